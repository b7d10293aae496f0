package tools

import (
	"os/exec"
	"strings"
	"testing"
)

// What a step of an installation writes is measured as what a run writes is: files without content take inodes, and what
// lies deeper than a path can name, or in a directory that nobody may read, takes as much as elsewhere.
func TestWhatAStepWrites(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		least        int64 // bytes
	}{
		{"empty files", "for i in $(seq 1000); do : > $i; done", 1000 * 4096},
		{"empty directories", "mkdir $(seq 1000)", 1000 * 4096},
		{"a directory that can't be read", "mkdir shut; head -c 3000000 /dev/zero > shut/in; chmod 0 shut", 3_000_000},
		{"deeper than a path", "d=" + strings.Repeat("d", 200) + "; for i in $(seq 60); do mkdir $d; cd -P $d; done; head -c 2000000 /dev/zero > deep", 2_000_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command("bash", "-ec", tt.script)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			used, err := usage(t.Context(), []string{t.TempDir(), dir}, true)
			if err != nil || used < tt.least || used > 3*tt.least {
				t.Errorf("%d bytes, %v; want some %d", used, err, tt.least)
			}
		})
	}
}
