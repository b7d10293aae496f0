package overlay

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// A cache is emptied when nobody has it; one of a workspace that is gone is removed.
func TestCleanCaches(t *testing.T) {
	c := newCache(t, 1<<20)
	state := filepath.Join(c.base, "state")
	gone, err := OpenCache(state, "/gone/workspace", 1<<20, os.Geteuid(), os.Getegid())
	if err != nil {
		t.Fatal(err)
	}
	clean := func(of string, dryRun bool) []CleanedCache {
		t.Helper()
		cleaned, err := CleanCaches(context.Background(), CleanOptions{StateDir: state, Workspace: of, DryRun: dryRun})
		if err != nil {
			t.Fatal(err)
		}
		return cleaned
	}
	left := func() string {
		t.Helper()
		names, err := c.files.list("")
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 {
			return ""
		}
		return names[0]
	}
	if got := clean(c.base, false); len(got) > 0 {
		t.Errorf("an empty one: %+v", got)
	}
	c.host("mkdir tool; head -c 102400 /dev/zero > tool/a; chmod 500 tool")
	txn := c.after("echo 1 > more")
	if got := clean(c.base, false); len(got) != 1 || !got[0].InUse || left() != "tool" {
		t.Errorf("while a run has it: %+v, left %q", got, left())
	}
	if err := txn.Discard(); err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range []bool{true, false} {
		got := clean(c.base, dryRun)
		if len(got) != 1 || got[0].InUse || got[0].Bytes < 100<<10 {
			t.Errorf("dry run %t: %+v", dryRun, got)
		}
		if (left() == "") == dryRun {
			t.Errorf("dry run %t: left %q", dryRun, left())
		}
	}
	if err := os.WriteFile(filepath.Join(gone.Files(), "a"), make([]byte, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	if got := clean("", false); len(got) != 1 || !got[0].Gone {
		t.Errorf("all: %+v", got)
	}
	if _, err := os.Lstat(gone.own.path); !os.IsNotExist(err) {
		t.Errorf("of the workspace that is gone: %v", err)
	}
}
