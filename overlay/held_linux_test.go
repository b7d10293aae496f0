package overlay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openDirect opens a workspace that runs write to, with files of these names; a slash at the end makes a
// directory.
func openDirect(t *testing.T, hide []string, names ...string) *Workspace {
	t.Helper()
	base := t.TempDir()
	dir := filepath.Join(base, "ws")
	makeNames(t, dir, append(names, "/")...)
	c := Defaults()
	c.Mode, c.Protect = "direct", []string{"*.key", "conf/**"}
	w, err := Open(dir, filepath.Join(base, "state"), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	w.SetGitUser(GitUser{Home: base})
	h, err := NewHidden(hide)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Hide(h); err != nil {
		t.Fatal(err)
	}
	return w
}

func makeNames(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// mounted spells the layers: "rw PATH", "ro PATH" or "no PATH".
func (w *Workspace) mounted(t *testing.T) map[string]bool {
	t.Helper()
	held, err := w.Hold(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, l := range held.Layers {
		rel, err := filepath.Rel(w.root.path, l.Lower)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case l.Writable:
			got["rw "+rel] = true
		case l.ReadOnly:
			got["ro "+rel] = true
		case l.Masked:
			got["no "+rel] = true
		}
	}
	return got
}

func mounts(list ...string) map[string]bool {
	m := map[string]bool{"rw .": true}
	for _, one := range list {
		m[one] = true
	}
	return m
}

func TestHold(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hide  []string
		files []string
		want  []string
	}{
		{"nothing", nil, []string{"a/b", "conf2/x"}, nil},
		{
			"git", nil,
			[]string{".git/HEAD", ".git/objects/", ".git/refs/", ".git/hooks/x", ".git/config", ".git/modules/m/HEAD", ".git/modules/m/objects/", ".git/modules/m/refs/", ".git/modules/m/config", ".git/worktrees/w/gitdir"},
			[]string{"rw .git", "ro .git/hooks", "ro .git/config", "rw .git/modules", "rw .git/modules/m", "ro .git/modules/m/config", "rw .git/worktrees", "rw .git/worktrees/w", "ro .git/worktrees/w/gitdir"},
		},
		{
			"a bare repository of any name", nil,
			[]string{"x/HEAD", "x/objects/", "x/refs/", "x/hooks/", "x/remotes/o", "no/HEAD", "no/hooks/"},
			[]string{"rw x", "ro x/hooks", "ro x/remotes"},
		},
		{"a pointer to one", nil, []string{"sub/.git"}, []string{"rw sub", "ro sub/.git"}},
		{"case", nil, []string{"a/.VSCode/x", ".EnvRC"}, []string{"rw a", "ro a/.VSCode", "ro .EnvRC"}},
		{"the user's", nil, []string{"conf/a/b", "a/x.key", "d.key/x/y"}, []string{"ro conf", "rw a", "ro a/x.key", "ro d.key"}},
		{
			"hidden",
			[]string{"s/", ".env", "all/**"},
			[]string{"s/x.key", "a/.env", "all/x", "conf/.env", "conf/a/.env"},
			[]string{"no s", "rw a", "no a/.env", "no all", "ro conf", "no conf/.env", "no conf/a/.env"},
		},
		{"ours", nil, []string{".airlock/x", "a/.airlock-land-1/y"}, []string{"no .airlock", "rw a", "no a/.airlock-land-1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := openDirect(t, tt.hide, tt.files...)
			for range 2 { // the second from memory
				want := mounts(tt.want...)
				got := w.mounted(t)
				delete(got, "ro s/x.key") // covered by what hides it
				delete(got, "rw s")
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("mounts (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestHoldFollowsGit: git's configuration sends it to a directory of hooks, and then to another.
func TestHoldFollowsGit(t *testing.T) {
	w := openDirect(t, nil, ".git/HEAD", "one/pre-push", "two/pre-push")
	for _, dir := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(w.root.path, ".git/config"), []byte("[core]\n\thooksPath = "+dir+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(mounts("rw .git", "ro .git/config", "ro "+dir), w.mounted(t)); diff != "" {
			t.Errorf("mounts (-want +got):\n%s", diff)
		}
	}
}

// TestHoldSeesChanges: what is made, removed or becomes something else between two looks is seen.
func TestHoldSeesChanges(t *testing.T) {
	w := openDirect(t, []string{".env"}, "a/b/c", "x/objects/", "x/refs/", "x/hooks/")
	if diff := cmp.Diff(mounts(), w.mounted(t)); diff != "" {
		t.Fatalf("mounts (-want +got):\n%s", diff)
	}
	before, err := w.Hold(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	makeNames(t, w.root.path, "a/b/.envrc", "a/.env", "x/HEAD")
	if err := os.Symlink("a/b/c", filepath.Join(w.root.path, ".profile")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mounts("rw a", "rw a/b", "ro a/b/.envrc", "no a/.env", "rw x", "ro x/hooks", "ro a/b/c"), w.mounted(t)); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	after, err := w.Hold(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a/b/.envrc", "a/b/c", "x/hooks", ".profile"}, before.Made(after)); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	if made := after.Made(before); len(made) > 0 {
		t.Errorf("made: %q", made)
	}
	if err := os.RemoveAll(filepath.Join(w.root.path, "a")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mounts("rw x", "ro x/hooks"), w.mounted(t)); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
}

// TestHoldClosed: what can't be looked into, for its mode or its depth, is read-only as a whole.
func TestHoldClosed(t *testing.T) {
	deep := strings.Repeat("d/", deepestHeld+20)
	w := openDirect(t, nil, deep, "shut/.envrc", "listed/.envrc")
	want := mounts()
	for dir, mode := range map[string]os.FileMode{"shut": 0, "listed": 0o400} {
		path := filepath.Join(w.root.path, dir)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
		if os.Geteuid() == 0 {
			want["rw "+dir], want["ro "+dir+"/.envrc"] = true, true
		} else {
			want["ro "+dir] = true
		}
	}
	got := w.mounted(t)
	tooDeep := 0
	for m := range got {
		switch {
		case strings.HasPrefix(m, "rw d"):
			delete(got, m)
		case strings.HasPrefix(m, "ro d"):
			tooDeep++
			delete(got, m)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || tooDeep != 1 {
		t.Errorf("%d too deep, mounts (-want +got):\n%s", tooDeep, diff)
	}
}

// TestHoldReads proves that a second look reads no directory that has not changed.
func TestHoldReads(t *testing.T) {
	w := openDirect(t, nil, "a/b/c", "d/e")
	opened := 0
	w.root.hook = func() { opened++ }
	x := &heldIndex{filter: w.filter, host: w.root, trusted: true}
	look := func() int {
		before := opened
		if _, err := x.look(context.Background(), stamp{sec: 1 << 40}); err != nil {
			t.Fatal(err)
		}
		return opened - before
	}
	first, second := look(), look()
	makeNames(t, w.root.path, "a/b/new")
	if third := look(); first != 4 || second != 0 || third != 1 {
		t.Errorf("directories opened: %d, %d, %d", first, second, third)
	}
}

// TestHoldForeign: root serves somebody else's workspace, from a state directory that only root gets to.
func TestHoldForeign(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root serves the workspaces of others")
	}
	base := t.TempDir()
	dir, state := filepath.Join(base, "ws"), filepath.Join(base, "state")
	makeNames(t, base, "ws/.envrc", "state/")
	if err := errors.Join(os.Chmod(state, 0o700), os.Chown(dir, 1, 1)); err != nil {
		t.Fatal(err)
	}
	c := Defaults()
	c.Mode = "direct"
	w, err := Open(dir, state, c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mounts("ro .envrc"), w.mounted(t)); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestHoldHasNoTransactions(t *testing.T) {
	w := openDirect(t, nil)
	if _, err := w.Begin(context.Background(), "r1"); !errors.Is(err, errDirect) {
		t.Errorf("begin: %v", err)
	}
	// A link under a name of ours is a run's, and keeps nothing from the next.
	if err := os.Symlink(".", filepath.Join(w.root.path, ".airlock-x")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mounts(), w.mounted(t)); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	// A link to all of it can't be hidden.
	w = openDirect(t, []string{".env"}, "x")
	if err := os.Symlink(".", filepath.Join(w.root.path, ".env")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Hold(context.Background()); err == nil || !strings.Contains(err.Error(), "link to the whole workspace") {
		t.Errorf("hold: %v", err)
	}
}
