package envs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Where a file can't have a second name, since the tree is on another filesystem or the file has all the names that it can
// have, the tree has a copy, with the mode of what is sealed; a name that is there is a collision all the same.
func TestLinkOrCopy(t *testing.T) {
	here := t.TempDir()
	there, err := os.MkdirTemp("/dev/shm", "airlock-test-")
	if err != nil {
		t.Skip("there is no second filesystem: ", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(there) })
	from := filepath.Join(here, "tool")
	if err := os.WriteFile(from, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(from, filepath.Join(there, "control")); !errors.Is(err, syscall.EXDEV) {
		t.Skip("the two directories are on one filesystem: ", err)
	}
	for _, tt := range []struct {
		to     string
		linked bool
	}{{filepath.Join(here, "tree"), true}, {filepath.Join(there, "tree"), false}} {
		if err := linkOrCopy(from, tt.to); err != nil {
			t.Fatal(err)
		}
		a, errA := os.Stat(from)
		b, errB := os.Stat(tt.to)
		if errA != nil || errB != nil || os.SameFile(a, b) != tt.linked || b.Mode().Perm()&0o111 == 0 || !sameContent(from, tt.to) {
			t.Errorf("%s: %v, %v, %v; want the same file: %t", tt.to, b, errA, errB, tt.linked)
		}
		if err := linkOrCopy(from, tt.to); !errors.Is(err, os.ErrExist) {
			t.Errorf("%s once more: %v", tt.to, err)
		}
	}
}
