package runcache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, state, workspace string, limit int64) *Cache {
	t.Helper()
	c, err := Open(state, workspace, limit, os.Geteuid(), os.Getegid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		_ = removeAll(state)
	})
	return c
}

func write(t *testing.T, name string, size int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Repeat("x", size)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, c *Cache) string {
	t.Helper()
	entries, err := os.ReadDir(c.Files())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func use(t *testing.T, c *Cache) (release func()) {
	t.Helper()
	release, err := c.Use()
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func TestTooLargeACacheLosesItsLargest(t *testing.T) {
	c := open(t, t.TempDir(), "/ws", 1<<20)
	write(t, filepath.Join(c.Files(), "small", "a"), 100<<10)
	write(t, filepath.Join(c.Files(), "large", "locked", "b"), 900<<10)
	if err := os.Chmod(filepath.Join(c.Files(), "large", "locked"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(c.Files(), "large"), 0); err != nil {
		t.Fatal(err)
	}
	use(t, c)() // not measured yet
	if got := names(t, c); got != "large small" {
		t.Errorf("within its limit: %q", got)
	}
	write(t, filepath.Join(c.Files(), "small", "c"), 200<<10)
	c.Measure()
	c.Close()
	busy := use(t, c)
	if got := names(t, c); got != "small" {
		t.Errorf("beyond its limit: %q", got)
	}
	if left, err := os.ReadDir(filepath.Join(c.dir, "trash")); err == nil {
		t.Errorf("the trash is left: %v", left)
	}
	// While another run has it nothing goes.
	write(t, filepath.Join(c.Files(), "small", "d"), 2<<20)
	if _, err := c.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	use(t, c)()
	if got := names(t, c); got != "small" {
		t.Errorf("in use: %q", got)
	}
	busy()
	use(t, c)()
	if got := names(t, c); got != "" {
		t.Errorf("not in use any more: %q", got)
	}
}

// Links lead nowhere: what they name outside is neither counted nor removed.
func TestLinksOfARunAreNotFollowed(t *testing.T) {
	c := open(t, t.TempDir(), "/ws", 64<<10)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "precious"), 10<<20)
	for _, link := range []string{"link", "dir/link"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(c.Files(), link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(c.Files(), link)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := c.measure(t.Context()); err != nil || got > 64<<10 {
		t.Errorf("measured %d, %v", got, err)
	}
	write(t, filepath.Join(c.Files(), "dir", "x"), 1<<20)
	if _, err := c.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	use(t, c)()
	if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil {
		t.Errorf("removed through a link: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(c.Files(), "dir")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was too large is there: %v", err)
	}
}

// What is too deep to be measured counts as too large, and goes all the same.
func TestNothingHidesInTheDepth(t *testing.T) {
	c := open(t, t.TempDir(), "/ws", 64<<20)
	at, err := os.OpenRoot(c.Files())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * maxDepth {
		if err := at.Mkdir("d", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := at.OpenRoot("d")
		at.Close()
		if err != nil {
			t.Fatal(err)
		}
		at = next
	}
	at.Close()
	if got, err := c.measure(t.Context()); err != nil || got != tooDeep {
		t.Errorf("measured %d, %v", got, err)
	}
	use(t, c)()
	if got := names(t, c); got != "" {
		t.Errorf("left: %q", got)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "trash")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the trash is left: %v", err)
	}
}

func TestGrown(t *testing.T) {
	c := open(t, t.TempDir(), "/ws", 1<<30)
	write(t, filepath.Join(c.Files(), "before"), 1<<20)
	if _, err := c.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	write(t, filepath.Join(c.Files(), "since"), 3<<20)
	c.Grown(ctx, func(bytes int64) {
		if bytes < 3<<20 || bytes > 4<<20 {
			t.Errorf("grown by %d", bytes)
		}
		cancel()
	})
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Error("nothing was told")
	}
}

// Each workspace has its own, and that of one which has long been gone is removed.
func TestCachesOfSeveralWorkspaces(t *testing.T) {
	state, ws := t.TempDir(), t.TempDir()
	a, gone, away := open(t, state, ws, 1), open(t, state, filepath.Join(ws, "gone"), 1), open(t, state, filepath.Join(ws, "away"), 1)
	if a.Files() == gone.Files() {
		t.Fatal("one cache for two workspaces")
	}
	old := time.Now().Add(-2 * unusedFor)
	for _, c := range []*Cache{a, gone, away} {
		use(t, c)()
		if c != away {
			if err := os.Chtimes(filepath.Join(c.dir, "lock"), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	open(t, state, ws, 1)
	for c, want := range map[*Cache]bool{a: true, gone: false, away: true} {
		if _, err := os.Stat(c.Files()); (err == nil) != want {
			t.Errorf("%s: %v", c.dir, err)
		}
	}
}
