package envs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"airlock/envs/envstest"
)

// A wheel that would put anything where it does not belong is refused before anything unpacks it: nothing of it
// is installed, nothing is left, and the error names it.
func TestHostileWheels(t *testing.T) {
	device := fs.ModeDevice | fs.ModeCharDevice | 0o644
	for _, tt := range []struct {
		name, member string
		mode         fs.FileMode
		claim        uint64
		want         string
	}{
		{"member leads out", "../../../../tmp/out.py", 0o644, 0, "leads out"},
		{"member leads out in the middle", "x/../../out.py", 0o644, 0, "leads out"},
		{"absolute member", "/tmp/out.py", 0o644, 0, "leads out"},
		{"set-id member", "bad.py", 0o755 | fs.ModeSetuid, 0, "set-id"},
		{"set-gid member", "bad.py", 0o755 | fs.ModeSetgid, 0, "set-id"},
		{"device", "bad.py", device, 0, "device"},
		{"pipe", "bad.py", fs.ModeNamedPipe | 0o644, 0, "pipe"},
		{"link", "x", fs.ModeSymlink | 0o777, 0, "is a link"},
		{"claims 10 GB", "bad.bin", 0o644, 10 << 30, "unpacks to more than"},
		{"command python3", "bad-1.0.dist-info/entry_points.txt", 0o644, 0, "would make a command"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.config.Allow = []string{"bad"}
			w.installer.Wheels = []envstest.Wheel{{
				Name: "bad", Version: "1.0", Files: map[string]string{tt.member: "[console_scripts]\npython3 = bad:x\n"}, Modes: map[string]fs.FileMode{tt.member: tt.mode}, Claim: tt.claim,
			}}
			c := w.begin()
			_, _, err := install(c, "default", "bad")
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "bad-1.0-py3-none-any.whl") {
				t.Errorf("error %v, want %q and the wheel's name", err, tt.want)
			}
			if e, err := c.Store().Environment("default"); err != nil || len(e.Packages) > 0 {
				t.Errorf("the environment holds %v, %v", e.Packages, err)
			}
			if made, err := os.ReadDir(filepath.Join(w.dir, "layers")); err != nil || len(made) > 0 {
				t.Errorf("layers %v, %v", made, err)
			}
			if n := w.installer.Steps("install"); n != 0 {
				t.Errorf("it was unpacked %d times", n)
			}
			w.clean()
		})
	}
}

// Two wheels of one set that install a file of the same name are a collision unless it is the same file: a checksum that
// is the same says nothing.
func TestWheelsThatCollide(t *testing.T) {
	for _, tt := range []struct{ one, other, want string }{
		{"plumless", "plumless", ""},
		{"plumless", "plumbing", "both install python3.11/site-packages/shared.py"},
		{"plumless", "buckeroo", "both install python3.11/site-packages/shared.py"}, // which have one CRC-32
	} {
		w := newWorld(t)
		w.config.Allow = []string{"one", "other"}
		for name, content := range map[string]string{"one": tt.one, "other": tt.other} {
			w.installer.Wheels = append(w.installer.Wheels, envstest.Wheel{Name: name, Version: "1.0", Files: map[string]string{"shared.py": content}})
		}
		_, _, err := install(w.begin(), "default", "one", "other")
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, %s: %v, want %q", tt.one, tt.other, err, tt.want)
		}
		w.clean()
	}
}
