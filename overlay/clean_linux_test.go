package overlay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// clean calls Clean on the workspace's state, by its path or as one of all.
func (f *fixture) clean(o CleanOptions) Cleaned {
	f.t.Helper()
	o.StateDir = f.state
	all, err := Clean(context.Background(), o)
	if err != nil || len(all) != 1 {
		f.t.Fatalf("cleaned %+v, %v", all, err)
	}
	return all[0]
}

// TestClean: what is kept for an undo goes, and what a dead server left; what goes on, or waits for review,
// is not touched, be it of this process or of another.
func TestClean(t *testing.T) {
	f := onDisk(t, "echo 1 > a")
	f.landed("dd if=/dev/zero of=a bs=64k count=2 2>/dev/null", "")
	f.landed("echo 3 > a", "")
	waits := f.parked("echo waits > w").Waiting
	txn := f.begin()
	run(t, txn.Layer(), "echo goes on > g")
	dead := filepath.Join(f.scratch.base.path, "1-0123456789abcdef")
	if err := os.MkdirAll(filepath.Join(dead, "r9", "upper"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, "r9", "upper", "x"), make([]byte, 100<<10), 0o600); err != nil {
		t.Fatal(err)
	}

	sizes := cmpopts.IgnoreFields(Cleaned{}, "History", "Scratch")
	want := Cleaned{Workspace: f.dir, Runs: 2, Servers: 1, Waiting: 1}
	for _, o := range []CleanOptions{
		{Workspace: f.dir, History: true, Scratch: true, DryRun: true},
		{History: true, Scratch: true, DryRun: true},
		{History: true, Scratch: true},
	} {
		got := f.clean(o)
		if d := cmp.Diff(want, got, sizes); d != "" {
			t.Errorf("%+v: %s", o, d)
		}
		if got.History < 128<<10 || got.History > 256<<10 || got.Scratch < 100<<10 {
			t.Errorf("%+v: %d bytes of history, %d of scratch", o, got.History, got.Scratch)
		}
		if _, err := os.Lstat(dead); (err == nil) != o.DryRun {
			t.Errorf("%+v: what the dead server left: %v", o, err)
		}
	}
	if d := cmp.Diff(Cleaned{Workspace: f.dir, Waiting: 1}, f.clean(CleanOptions{Workspace: f.dir, History: true, Scratch: true})); d != "" {
		t.Errorf("a second time: %s", d)
	}
	f.land(txn)
	f.host("grep -qx 'goes on' g")
	if _, err := f.Undo(context.Background(), ""); err != nil {
		t.Errorf("the run that went on can't be taken back: %v", err)
	}
	var notKept *NotKeptError
	if _, err := f.Undo(context.Background(), "r1"); !errors.As(err, &notKept) {
		t.Errorf("undo of what was cleaned: %v", err)
	}
	if _, err := f.LandWaiting(context.Background(), waits); err != nil {
		t.Error(err)
	}
}

// TestCleanKeeps: a workspace that a landing was cut off in, and one in which another lands, are left alone.
func TestCleanKeeps(t *testing.T) {
	f := onDisk(t, "echo 1 > a")
	f.landed("echo 2 > a", "")
	if err := os.WriteFile(f.journalPath(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := f.clean(CleanOptions{Workspace: f.dir, History: true, Scratch: true}); got.Kept == "" || got.Runs > 0 {
		t.Errorf("with a journal: %+v", got)
	}
	if err := os.Remove(f.journalPath()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Undo(context.Background(), ""); err != nil {
		t.Error(err)
	}
	if all, err := Clean(context.Background(), CleanOptions{StateDir: f.state, Workspace: "/none", History: true}); len(all) > 0 || err != nil {
		t.Errorf("a workspace without a state: %+v, %v", all, err)
	}
}

// TestCleanGone: of a workspace that is not there any more nothing is left to take back.
func TestCleanGone(t *testing.T) {
	f := emptyFixture(t, t.TempDir())
	f.host("echo 1 > a")
	var err error
	if f.Workspace, err = Open(f.dir, f.state, Defaults()); err != nil {
		t.Fatal(err)
	}
	f.landed("echo 2 > a", "")
	if err := errors.Join(f.Close(), os.RemoveAll(f.dir)); err != nil {
		t.Fatal(err)
	}
	got := f.clean(CleanOptions{History: true})
	if d := cmp.Diff(Cleaned{Workspace: f.dir, Gone: true, Runs: 1}, got, cmpopts.IgnoreFields(Cleaned{}, "History")); d != "" {
		t.Error(d)
	}
	left, err := os.ReadDir(filepath.Join(f.scratch.base.path, historyName))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
