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

// TestCleanBeside: of a workspace that is gone, its place of layers beside it goes, too: nobody looks for it there.
func TestCleanBeside(t *testing.T) {
	f := emptyFixture(t, t.TempDir())
	f.state = filepath.Join(otherFilesystem(t, f.base), "state")
	f.host("echo 1 > a")
	var err error
	if f.Workspace, err = Open(f.dir, f.state, Defaults()); err != nil {
		t.Fatal(err)
	}
	beside := f.scratch.base.path
	// A server that was killed before anything landed.
	f.scratch.leave()
	if all, err := Clean(context.Background(), CleanOptions{StateDir: f.state, Workspace: f.dir, Scratch: true}); err != nil || len(all) != 1 || all[0].Servers != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := os.Lstat(beside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left of a killed server: %v", beside, err)
	}
	if f.Workspace, err = Open(f.dir, f.state, Defaults()); err != nil {
		t.Fatal(err)
	}
	if beside != besidePlace(f.dir) {
		t.Fatalf("the layers are in %s", beside)
	}
	f.landed("echo 2 > a", "")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f.clean(CleanOptions{Workspace: f.dir, History: true})
	if _, err := os.Stat(filepath.Join(beside, historyName)); err != nil {
		t.Errorf("what the history says of a workspace that is there: %v", err)
	}
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	f.clean(CleanOptions{History: true, DryRun: true})
	if _, err := os.Stat(beside); err != nil {
		t.Errorf("a dry run removed it: %v", err)
	}
	f.clean(CleanOptions{History: true})
	if _, err := os.Lstat(beside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", beside, err)
	}
}

// TestCleanBothHalves: a landing that was one with one in a git directory elsewhere goes whole.
func TestCleanBothHalves(t *testing.T) {
	f := linked(t, t.TempDir())
	f.inGit("echo 2 > f; git commit -qam two", "")
	git := filepath.Join(f.base, "main", ".git")
	for _, dryRun := range []bool{true, false} {
		all, err := Clean(context.Background(), CleanOptions{StateDir: f.state, Workspace: f.dir, History: true, DryRun: dryRun})
		want := []Cleaned{{Workspace: f.dir, Runs: 1}, {Workspace: git, Runs: 1}}
		if d := cmp.Diff(want, all, cmpopts.IgnoreFields(Cleaned{}, "History")); d != "" || err != nil {
			t.Errorf("dry run %v: %v %s", dryRun, err, d)
		}
	}
	all, err := Clean(context.Background(), CleanOptions{StateDir: f.state, History: true})
	if err != nil {
		t.Error(err)
	}
	for _, one := range all {
		if one.History > 0 || one.Runs > 0 {
			t.Errorf("left: %+v", one)
		}
	}
	var notKept *NotKeptError
	if _, err := f.Undo(context.Background(), ""); !errors.As(err, &notKept) {
		t.Errorf("undo of what was cleaned: %v", err)
	}
}

// TestCleanHalfOnly: the landings of another workspace in the same git directory stay.
func TestCleanHalfOnly(t *testing.T) {
	f := linked(t, t.TempDir())
	f.inGit("echo 2 > f; git commit -qam two", "")
	f.host("git -C ../main worktree add -q ../other other")
	other := *f
	other.dir = filepath.Join(f.base, "other")
	var err error
	if other.Workspace, err = Open(other.dir, f.state, Defaults()); err != nil {
		t.Fatal(err)
	}
	defer other.Workspace.Close()
	other.inGit("echo 3 > f; git commit -qam three", "")
	if _, err := Clean(context.Background(), CleanOptions{StateDir: f.state, Workspace: f.dir, History: true}); err != nil {
		t.Error(err)
	}
	if _, err := other.Undo(context.Background(), ""); err != nil {
		t.Errorf("the other worktree's can't be taken back: %v", err)
	}
	other.host("grep -qx 1 f")
}
