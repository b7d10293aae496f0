package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// lowerTree plays an overlay on a plain directory: what was there at first can't be renamed if it is a
// directory. The call number failAt fails, and with forever all after it.
type lowerTree struct {
	lower   map[uint64]bool // inodes
	calls   int
	failAt  int
	forever bool
}

func newLowerTree(t *testing.T, dir string) *lowerTree {
	l := &lowerTree{lower: make(map[uint64]bool)}
	var walk func(p string)
	walk = func(p string) {
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			t.Fatal(err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return
		}
		l.lower[st.Ino] = true
		if st.Mode&0o500 != 0o500 {
			_ = unix.Chmod(p, 0o700)
			defer unix.Chmod(p, st.Mode&0o7777)
		}
		entries, err := os.ReadDir(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			walk(filepath.Join(p, e.Name()))
		}
	}
	walk(dir)
	return l
}

func (l *lowerTree) fault() error {
	l.calls++
	if l.calls == l.failAt || l.forever && l.calls > l.failAt {
		return unix.ENOSPC
	}
	return nil
}

func (l *lowerTree) dirCalls() dirCalls {
	return dirCalls{
		mkdir: func(e entry) error {
			if err := l.fault(); err != nil {
				return err
			}
			return realCalls.mkdir(e)
		},
		rename: func(from, to entry, flags uint) error {
			if err := l.fault(); err != nil {
				return err
			}
			var st unix.Stat_t
			if err := unix.Fstatat(from.dir, from.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return err
			}
			if l.lower[st.Ino] {
				// The kernel asks for this right first.
				if from.dir != to.dir && unix.Faccessat(from.dir, from.name, unix.W_OK, unix.AT_EACCESS) != nil {
					return unix.EACCES
				}
				return unix.EXDEV
			}
			return realCalls.rename(from, to, flags)
		},
		rmdir: func(e entry) error {
			if err := l.fault(); err != nil {
				return err
			}
			var st unix.Stat_t
			if err := unix.Fstatat(e.dir, e.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return err
			}
			err := realCalls.rmdir(e)
			if err == nil {
				delete(l.lower, st.Ino) // the number may come again
			}
			return err
		},
	}
}

// detached detaches one directory of a new tree, with a fault, and describes what is there afterwards.
func detached(t *testing.T, name string, failAt int, forever bool) (tree []string, m *mover, calls int, err error) {
	t.Helper()
	dir := t.TempDir()
	defer openUp(dir)
	growTree(t, dir)
	l := newLowerTree(t, dir)
	l.failAt, l.forever = failAt, forever
	fd, e := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if e != nil {
		t.Fatal(e)
	}
	defer unix.Close(fd)
	m = &mover{calls: l.dirCalls()}
	err = m.detach(entry{fd, name})
	return describeTree(dir)[1:], m, l.calls, err // without the directory itself, whose time is new
}

// Whichever call fails, the tree is as it was, but for inode numbers.
func TestDetachIsUndone(t *testing.T) {
	plain := t.TempDir()
	growTree(t, plain)
	want := describeTree(plain)[1:]
	openUp(plain)
	for _, name := range []string{"d", "p", "locked", "sticky", "listed", "default"} {
		tree, m, calls, err := detached(t, name, 0, false)
		if err != nil || m.torn {
			t.Fatalf("%s without a fault: %v, torn %v", name, err, m.torn)
		}
		if diff := cmp.Diff(want, tree); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
		for k := 1; k < calls; k++ { // the last call is another test's
			tree, m, _, err := detached(t, name, k, false)
			if err != unix.ENOSPC || m.torn {
				t.Errorf("%s, call %d of %d failed: %v, torn %v", name, k, calls, err, m.torn)
			}
			if diff := cmp.Diff(want, tree); diff != "" {
				t.Errorf("%s, call %d of %d failed (-before +after):\n%s", name, k, calls, diff)
			}
		}
	}
}

// Where the way back fails as well, that is said, and nothing is lost.
func TestDetachTorn(t *testing.T) {
	plain := t.TempDir()
	growTree(t, plain)
	want := describeTree(plain)[1:]
	openUp(plain)
	_, _, calls, _ := detached(t, "p", 0, false)
	torn := 0
	for k := 1; k <= calls; k++ {
		tree, m, _, err := detached(t, "p", k, true)
		if err == nil {
			t.Errorf("call %d and all after it failed, and there is no error", k)
		}
		if m.torn {
			torn++
			if len(tree) < len(want) {
				t.Errorf("call %d and all after it failed: of %d entries %d are left", k, len(want), len(tree))
			}
		} else if diff := cmp.Diff(want, tree); diff != "" {
			t.Errorf("call %d and all after it failed, and nothing was said (-before +after):\n%s", k, diff)
		}
	}
	if torn == 0 {
		t.Error("nothing was torn, whichever call failed")
	}
}

// What is put into a directory while it is being moved comes along.
func TestDetachTakesWhatComes(t *testing.T) {
	dir := t.TempDir()
	defer openUp(dir)
	growTree(t, dir)
	calls := newLowerTree(t, dir).dirCalls()
	rmdir, late := calls.rmdir, 0
	calls.rmdir = func(e entry) error {
		if e.name == "d" && late < 3 {
			late++
			if err := os.WriteFile(filepath.Join(dir, "d", "late-"+string(rune('0'+late))), nil, fs.FileMode(0o600)); err != nil {
				t.Error(err)
			}
		}
		return rmdir(e)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	m := &mover{calls: calls}
	if err := m.detach(entry{fd, "d"}); err != nil || m.torn {
		t.Fatal(err, m.torn)
	}
	for _, name := range []string{"a", "late-1", "late-2", "late-3"} {
		if _, err := os.Lstat(filepath.Join(dir, "d", name)); err != nil {
			t.Error(err)
		}
	}
}
