package runcache

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A cache is emptied when nobody has it; one of a workspace that is gone is removed.
func TestClean(t *testing.T) {
	state, workspace := t.TempDir(), t.TempDir()
	c := open(t, state, workspace, 1<<20)
	other := open(t, state, "/gone/workspace", 1<<20)
	clean := func(of string, dryRun bool) []Cleaned {
		t.Helper()
		cleaned, err := Clean(context.Background(), state, of, dryRun)
		if err != nil {
			t.Fatal(err)
		}
		return cleaned
	}
	if got := clean(workspace, false); len(got) > 0 {
		t.Errorf("an empty one: %+v", got)
	}
	write(t, filepath.Join(c.Files(), "tool", "a"), 100<<10)
	if err := os.Chmod(filepath.Join(c.Files(), "tool"), 0o500); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(other.Files(), "tool", "a"), 1)

	release := use(t, c)
	if got := clean(workspace, false); len(got) != 1 || !got[0].InUse || names(t, c) != "tool" {
		t.Errorf("while a run has it: %+v, left %q", got, names(t, c))
	}
	release()
	for _, dryRun := range []bool{true, false} {
		got := clean(workspace, dryRun)
		if len(got) != 1 || got[0].InUse || got[0].Bytes < 100<<10 {
			t.Errorf("dry run %t: %+v", dryRun, got)
		}
		if (names(t, c) == "") == dryRun {
			t.Errorf("dry run %t: left %q", dryRun, names(t, c))
		}
	}
	use(t, c)()
	if got := clean("", false); len(got) != 1 || !got[0].Gone {
		t.Errorf("all: %+v", got)
	}
	if _, err := os.Lstat(other.dir); !os.IsNotExist(err) {
		t.Errorf("of the workspace that is gone: %v", err)
	}
}

// What is young yet, or in use, is not swept.
func TestSweepLeavesWhatIsInUse(t *testing.T) {
	state := t.TempDir()
	c := open(t, state, "/gone/workspace", 1<<20)
	release := use(t, c)
	old := time.Now().Add(-2 * unusedFor)
	if err := os.Chtimes(filepath.Join(c.dir, "lock"), old, old); err != nil {
		t.Fatal(err)
	}
	sweep(filepath.Dir(c.dir))
	if _, err := os.Lstat(c.dir); err != nil {
		t.Errorf("while a run has it: %v", err)
	}
	release()
}
