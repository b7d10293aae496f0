package overlay

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDeep: a tree of directories that is deeper than any path can be is measured, and withheld by name.
func TestDeep(t *testing.T) {
	f := onDisk(t, "")
	txn := f.begin()
	cmd := exec.Command(self(), "deep", txn.Layer().Upper, "3500", "d")
	cmd.Env = append(os.Environ(), asTool+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := txn.FinalUsage(t.Context()); err != nil {
		t.Error(err)
	}
	got := f.land(txn)
	if len(got.Withheld) != 1 || len(got.Withheld[0].Path) < unix.PathMax {
		t.Errorf("withheld %d", len(got.Withheld))
	}
}

// TestTrail: whatever is opened through a trail is what its path says, and no more descriptors are held
// than it may have.
func TestTrail(t *testing.T) {
	f := onDisk(t, `mkdir -p a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t a/b/x a/bb y; for d in $(find . -type d); do echo $d > $d/here; done`)
	view := f.root.trailing()
	defer view.release()
	deepest := "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t"
	paths := []string{"y", deepest, deepest[:5], "a/b/x", "a/bb", "", "a", deepest, deepest[:35], "a/b/c", "y"}
	for _, path := range paths {
		err := view.at(path, func(fd int) error {
			link := "/proc/self/fd/" + strconv.Itoa(fd)
			if got, err := os.Readlink(link); err != nil || strings.TrimSuffix(f.dir+"/"+path, "/") != got {
				t.Errorf("%s is %s, %v", path, got, err)
			}
			// While it is in use, something far away is opened and nothing of it is closed.
			if err := view.through("y/here", func(string) error { return nil }); err != nil {
				return err
			}
			if got, err := os.Readlink(link); err != nil || strings.TrimSuffix(f.dir+"/"+path, "/") != got {
				t.Errorf("%s became %s, %v", path, got, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		file, err := view.file(joinPath(path, "here"))
		if err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 100)
		n, _ := file.Read(text)
		file.Close()
		if want := strings.TrimSuffix("./"+path, "/"); strings.TrimSpace(string(text[:n])) != want {
			t.Errorf("%s/here says %q, want %q", path, text[:n], want)
		}
		if n := len(view.trail.dirs); n > trailMax {
			t.Errorf("%d directories are held", n)
		}
	}
}
