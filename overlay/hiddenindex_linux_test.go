package overlay

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outermost are the hidden paths of a tree that lie in nothing hidden.
func outermost(h Hidden, paths map[string]bool) map[string]bool {
	found := map[string]bool{}
	for p, isDir := range paths {
		if h.Hides(p, isDir) && !h.Hides(parentPath(p), true) {
			found[p] = true
		}
	}
	return found
}

// masked are the paths of a tree that a look hides.
func masked(paths map[string]bool, dirs []hidingDir) map[string]bool {
	found := map[string]bool{}
	for _, d := range dirs {
		for _, name := range d.hidden {
			if _, there := paths[joinPath(d.path, name)]; there {
				found[joinPath(d.path, name)] = true
			}
		}
		for p := range paths {
			if d.all && parentPath(p) == d.path {
				found[p] = true
			}
		}
	}
	return found
}

// TestHiddenIndexFindsAll compares what the walk finds with what the patterns say of each path.
func TestHiddenIndexFindsAll(t *testing.T) {
	root := t.TempDir()
	paths := treeOfABC(t, root)
	host, err := openTree(root)
	if err != nil {
		t.Fatal(err)
	}
	defer host.close()
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		globs := randomGlobs(r)
		h, err := NewHidden(globs)
		if err != nil {
			t.Fatal(err)
		}
		x := newHiddenIndex(h, host, true)
		for range 2 { // the second from memory
			dirs, err := x.look(stamp{sec: 1 << 40})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(outermost(h, paths), masked(paths, dirs)); diff != "" {
				t.Fatalf("%q (-patterns +walk):\n%s", globs, diff)
			}
		}
	}
}

// TestHiddenIndexSeesChanges changes a tree at random between looks of one index.
func TestHiddenIndexSeesChanges(t *testing.T) {
	f := onDisk(t, "")
	h, err := NewHidden([]string{".env", "k/**", "!k/open", "s/x", "*.key"})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Hide(h); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	path := func() string {
		names := []string{"a", "b", "k", "s", ".env", "x", "open", "p.key"}
		p := make([]string, 1+r.IntN(3))
		for i := range p {
			p[i] = names[r.IntN(len(names))]
		}
		return filepath.Join(append([]string{f.dir}, p...)...)
	}
	for step := range 80 {
		for range r.IntN(4) {
			switch p := path(); r.IntN(4) {
			case 0:
				os.MkdirAll(filepath.Dir(p), 0o755)
				os.WriteFile(p, nil, 0o644)
			case 1:
				os.MkdirAll(p, 0o755)
			case 2:
				os.RemoveAll(p)
			case 3:
				os.Rename(p, path())
			}
		}
		txn := f.begin()
		paths := map[string]bool{}
		filepath.WalkDir(f.dir, func(p string, d os.DirEntry, err error) error {
			if rel, _ := filepath.Rel(f.dir, p); rel != "." {
				paths[rel] = d.IsDir()
			}
			return err
		})
		var dirs []hidingDir
		if txn.mask != nil {
			dirs = txn.mask.dirs
		}
		if diff := cmp.Diff(outermost(h, paths), masked(paths, dirs)); diff != "" {
			t.Fatalf("step %d (-patterns +mask):\n%s", step, diff)
		}
		if _, err := txn.Discard("test"); err != nil {
			t.Fatal(err)
		}
	}
	if left := f.leftovers(); strings.Count(left, "mask-") > 1 {
		t.Errorf("masks are left: %s", left)
	}
}

// TestHiddenIndexReads proves that a second look reads no directory that has not changed.
func TestHiddenIndexReads(t *testing.T) {
	root := t.TempDir()
	for i := range 20 {
		if err := os.MkdirAll(filepath.Join(root, fmt.Sprint(i), "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	host, err := openTree(root)
	if err != nil {
		t.Fatal(err)
	}
	defer host.close()
	opened := 0
	host.hook = func() { opened++ }
	h, _ := NewHidden([]string{"*.key"})
	x := newHiddenIndex(h, host, true)
	look := func() (n int) {
		t.Helper()
		before := opened
		if _, err := x.look(stamp{sec: 1 << 40}); err != nil {
			t.Fatal(err)
		}
		return opened - before
	}
	first, second := look(), look()
	if err := os.WriteFile(filepath.Join(root, "7", "new.key"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if third := look(); first != 41 || second != 0 || third != 1 {
		t.Errorf("directories opened: %d, %d, %d", first, second, third)
	}
	// One that was changed at a moment that has not passed can change again with the same ctime.
	x = newHiddenIndex(h, host, true)
	for range 2 {
		before := opened
		if _, err := x.look(stamp{}); err != nil {
			t.Fatal(err)
		}
		if n := opened - before; n != 41 {
			t.Errorf("directories opened: %d", n)
		}
	}
}
