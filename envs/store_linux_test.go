package envs

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A step can leave directories of any mode, and deeper than a path can name; they go with it.
func TestRemovingWhatAStepLeft(t *testing.T) {
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.newWork()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-ec", "mkdir -p shut/in; chmod 0 shut/in shut; d="+strings.Repeat("d", 200)+"; for i in $(seq 60); do mkdir $d; cd -P $d; done; mkdir -p shut/in; : > shut/in/x; chmod 0 shut/in shut; chmod 0 .")
	cmd.Dir = w.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.close()
	if left, err := os.ReadDir(s.path("work")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
