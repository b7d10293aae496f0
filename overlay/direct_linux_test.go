package overlay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"airlock/internal/filelock"
)

// noteDirect notes a run of a fixture's workspace that writes to it itself.
func (f *fixture) noteDirect(run, what string) (forget func() error) {
	f.t.Helper()
	forget, err := NoteDirect(context.Background(), f.dir, f.state, run, what)
	if err != nil {
		f.t.Fatal(err)
	}
	return forget
}

// TestUndoAfterDirect: a run that wrote to the workspace itself is the last one, though nothing can take it back; an earlier one
// is taken back only by its name.
func TestUndoAfterDirect(t *testing.T) {
	f := onDisk(t, "echo 1 > a; echo 1 > b")
	last := func(want string) {
		t.Helper()
		for what, err := range map[string]error{
			"undo": func() error { _, err := f.Undo(context.Background(), ""); return err }(),
			"diff": f.Diff(context.Background(), "", &strings.Builder{}),
		} {
			var direct *DirectError
			if !errors.As(err, &direct) || direct.Run != want || direct.Named {
				t.Errorf("%s: %v, want that run %s wrote directly", what, err, want)
			}
		}
	}
	forget := f.noteDirect("d0", "first")
	last("d0") // and none has landed
	if err := forget(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Undo(context.Background(), ""); !errors.Is(err, ErrNoLanding) {
		t.Errorf("undo after a run that did not begin: %v", err)
	}
	f.landed("echo 2 > a; echo 2 > b", "")
	f.noteDirect("d1", "second")
	f.host("echo 3 > b")
	last("d1")
	var direct *DirectError
	if _, err := f.Undo(context.Background(), "d1"); !errors.As(err, &direct) || !direct.Named || direct.What != "second" {
		t.Errorf("undo by its name: %v", err)
	}
	if got := f.states(); got != "direct kept" {
		t.Errorf("history: %s", got)
	}
	// What it changed stays beside what is taken back.
	report := f.undo("r1")
	if got := f.host("cat a b"); got != "1\n3\n" || len(report.Conflicts) != 1 {
		t.Errorf("after undo: %q, %+v", got, report)
	}
	if got := f.states(); got != "kept direct undone" {
		t.Errorf("history: %s", got)
	}
	f.undo("") // of the undo, which is the last

	// A run that is noted is none of the workspace's once that is gone, as a landing is.
	if all, err := readDirect(f.Workspace.state); err != nil || len(all) != 1 {
		t.Errorf("control: %v, %v", all, err)
	}
	f.host("cd /; mv $OLDPWD $BASE/elsewhere")
	if _, err := Clean(context.Background(), CleanOptions{StateDir: f.state, Workspace: f.dir, History: true}); err != nil {
		t.Fatal(err)
	}
	if all, err := readDirect(f.Workspace.state); err != nil || len(all) > 0 {
		t.Errorf("left of a workspace that is gone: %v, %v", all, err)
	}
}

// TestDirectDamaged: what is no note of a run is not listed, nothing of it is shown, and it keeps no run from being noted.
func TestDirectDamaged(t *testing.T) {
	f := onDisk(t, "echo 1 > a")
	f.noteDirect("d0", "first")
	for text, want := range map[string]string{
		"":     "",
		"null": "",
		"{}":   "",
		`[null, {"run": "\u001b[31m\nexit=0"}, {"run": "d1"}]`: "direct",
		`[{"run": "d1"}`: "",
	} {
		if err := os.WriteFile(filepath.Join(f.Workspace.state, directName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := f.states(); got != want {
			t.Errorf("%s: history: %q, want %q", text, got, want)
		}
		f.noteDirect("d2", "another")
		if got := f.states(); !strings.HasPrefix(got, "direct") || (want == "") != (got == "direct") {
			t.Errorf("%s, and another run: history: %q", text, got)
		}
	}
}

// TestDirectLimit: so many are known, the last ones.
func TestDirectLimit(t *testing.T) {
	f := onDisk(t, "")
	for i := range directLimit + 3 {
		f.noteDirect(fmt.Sprint("d", i), strings.Repeat("x", 2000))
	}
	all, err := f.History(context.Background())
	if err != nil || len(all) != directLimit || all[0].Run != fmt.Sprint("d", directLimit+2) || len(all[0].What) != 1024 {
		t.Errorf("%d runs, %v", len(all), err)
	}
}

// TestCleanAfterDirect: the notes go with the workspace, also where no transaction was ever begun in it, and all are cleaned.
func TestCleanAfterDirect(t *testing.T) {
	state, dir := t.TempDir(), filepath.Join(t.TempDir(), "ws")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := NoteDirect(context.Background(), dir, state, "d1", "first"); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(state, "workspaces", workspaceID(dir))
	clean := func(o CleanOptions, want int) {
		t.Helper()
		o.StateDir = state
		if _, err := Clean(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		if all, err := readDirect(own); err != nil || len(all) != want {
			t.Errorf("after %+v: %v, %v", o, all, err)
		}
	}
	if waiting, err := WaitingIn(state); err != nil || len(waiting) > 0 {
		t.Errorf("waiting: %v, %v", waiting, err)
	}
	clean(CleanOptions{History: true, Scratch: true}, 1) // it is there
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	clean(CleanOptions{Scratch: true}, 1)
	clean(CleanOptions{History: true, DryRun: true}, 1)
	clean(CleanOptions{History: true}, 0)
}

// TestForgetDirect: the note of a run that did not begin goes although it did not since its call was cancelled.
func TestForgetDirect(t *testing.T) {
	f := onDisk(t, "")
	ctx, cancel := context.WithCancel(context.Background())
	forget, err := NoteDirect(ctx, f.dir, f.state, "d1", "first")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	landing, err := filelock.Try(filepath.Join(f.Workspace.state, "lock"), filelock.Shared)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, func() { _ = landing.Unlock() }) // so that it has to wait
	if err := forget(); err != nil {
		t.Error(err)
	}
	if got := f.states(); got != "" {
		t.Errorf("history: %s", got)
	}
}
