package overlay

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestBackToBack: a run that begins right after a landing never conflicts with it, and an edit right
// after a beginning is always seen.
func TestBackToBack(t *testing.T) {
	for fs, base := range bases(t) {
		t.Run(fs, func(t *testing.T) {
			f := newFixture(t, base, "echo 0 > n; mkdir d; echo 0 > d/n")
			for i := range 100 {
				txn := f.begin()
				// What a run leaves is written into the layer directly: a copy has an origin.
				for _, p := range []string{"n", "log"} {
					path := filepath.Join(txn.Layer().Upper, p)
					if err := os.WriteFile(path, fmt.Appendf(nil, "%d\n", i+1), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				report := f.land(txn)
				if len(report.Conflicts) > 0 || len(report.Added)+len(report.Modified) != 2 {
					t.Fatalf("run %d: %+v", i, report)
				}
			}
			for i := range 100 {
				txn := f.begin()
				text := fmt.Appendf(nil, "host %d\n", i)
				if err := os.WriteFile(filepath.Join(f.dir, "n"), text, 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(txn.Layer().Upper, "n"), []byte("run\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				if report := f.land(txn); len(report.Conflicts) != 1 {
					t.Fatalf("edit %d was not seen: %+v", i, report)
				}
			}
		})
	}
}

// TestClock: if the clock is set back during a run, nothing that differs is taken for unchanged.
func TestClock(t *testing.T) {
	f := onDisk(t, "echo 1 > a; echo 1 > b; echo 1 > c")
	txn := f.begin()
	run(t, txn.Layer(), "echo run > a; rm b; echo new > d; touch -a c")
	// As if the filesystem's clock had been an hour ahead when the run began.
	txn.begin.at.sec += 3600
	want := "workspace: 1 added: d; 2 conflicts: a changed meanwhile and was kept, this run's version is a.conflict-r1, b changed meanwhile and was kept as it is"
	if got := f.land(txn).Summary(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	m := marker{stamp{100, 0}, time.Second - 5, time.Second}
	for _, tt := range []struct {
		later  marker
		steady bool
	}{
		{marker{stamp{101, 0}, 2 * time.Second, 2 * time.Second}, true},
		{marker{stamp{100, 990_000_000}, 2 * time.Second, 2 * time.Second}, true}, // a coarse stamp
		{marker{stamp{100, 900_000_000}, 2 * time.Second, 3 * time.Second}, false},
		{marker{stamp{100, 500_000_000}, 1500 * time.Millisecond, 9 * time.Second}, true}, // no CPU for a while
		{marker{stamp{90, 0}, 2 * time.Second, 2 * time.Second}, false},
		{marker{stamp{5000, 0}, 2 * time.Second, 2 * time.Second}, true}, // set forward: harmless
	} {
		if got := m.steadyUntil(tt.later); got != tt.steady {
			t.Errorf("until %v: %v", tt.later, got)
		}
	}
}

// TestOverlapping: two runs at once conflict on what both changed, and on nothing else.
func TestOverlapping(t *testing.T) {
	f := onDisk(t, "mkdir -p d/e; echo 1 > d/e/a; echo 1 > d/e/b; echo 1 > both; echo 1 > d/c")
	one, two := f.begin(), f.begin()
	run(t, one.Layer(), "echo one > d/e/a; echo one > both; echo one > d/e/new1; echo one > d/n1; echo > n1")
	run(t, two.Layer(), "echo two > d/e/b; echo two > both; echo two > d/e/new2; echo two > d/c; rm -r d/e; mkdir d/e; echo two > d/e/b")
	if got, want := f.land(one).Summary(), "workspace: 3 added, 2 modified: d/e/new1, d/n1, n1, both, d/e/a"; got != want {
		t.Errorf("first:  %s\nwant    %s", got, want)
	}
	want := "workspace: 2 modified: d/c, d/e/b; 3 conflicts: both changed meanwhile and was kept, this run's version is both.conflict-r2, " +
		"d/e/a changed meanwhile and was kept as it is, d/e/new1 changed meanwhile and was kept as it is"
	if got := f.land(two).Summary(); got != want {
		t.Errorf("second: %s\nwant    %s", got, want)
	}
	f.host("grep -qx one both; grep -qx two both.conflict-r2; grep -qx two d/e/b; grep -qx one d/e/a")
}

// otherFilesystem makes a directory on another filesystem than that of base.
func otherFilesystem(t *testing.T, base string) string {
	t.Helper()
	here, err := statAt(unix.AT_FDCWD, base)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/dev/shm", "/tmp", "/var/tmp"} {
		if there, err := statAt(unix.AT_FDCWD, dir); err != nil || there.kind == absent || there.dev == here.dev {
			continue
		}
		if tmp, err := os.MkdirTemp(dir, "overlay-test-"); err == nil {
			t.Cleanup(func() { os.RemoveAll(tmp) })
			return tmp
		}
	}
	t.Skip("no second filesystem here")
	return ""
}

// TestPlaces: layers lie in the state directory, else beside the workspace, else in it, where runs
// don't see them; nothing but the history is left in the end.
func TestPlaces(t *testing.T) {
	base := t.TempDir()
	other := otherFilesystem(t, base)
	for _, tt := range []struct{ name, state, where string }{
		{"state", filepath.Join(base, "state"), base + "/state/workspaces/"},
		{"beside", filepath.Join(other, "state"), base + "/.airlock-"},
		{"inside", filepath.Join(other, "state2"), base + "/ws/.airlock/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(base, "ws")
			os.Mkdir(dir, 0o755)
			os.WriteFile(filepath.Join(dir, "a"), []byte("1\n"), 0o644)
			os.Mkdir(filepath.Join(dir, "secrets"), 0o755)
			os.WriteFile(filepath.Join(dir, "secrets", "key"), []byte("1\n"), 0o644)
			if tt.name == "inside" {
				// Beside the workspace there is something that is not ours.
				w, err := Open(dir, tt.state, Defaults())
				if err != nil {
					t.Fatal(err)
				}
				beside := w.scratch.base.path
				w.Close()
				if err := os.RemoveAll(beside); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(beside, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				defer os.Remove(beside)
			}
			w, err := Open(dir, tt.state, Defaults())
			if err != nil {
				t.Fatal(err)
			}
			hidden, _ := NewHidden([]string{"*", "!a", "!b", "!b/c", "!secrets", "upper/"})
			if err := w.Hide(hidden); err != nil {
				t.Fatal(err)
			}
			txn, err := w.Begin(context.Background(), "r1")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(txn.Layer().Upper, tt.where) {
				t.Errorf("the layer is %s, not in %s", txn.Layer().Upper, tt.where)
			}
			run(t, txn.Layer(), "! test -e .airlock || exit 9; ! test -e secrets/key || exit 9; test -d secrets; ! ls .airlock || exit 9; echo 2 > a; mkdir b; echo 3 > b/c")
			report, err := txn.Land(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if got, want := report.Summary(), "workspace: 1 added, 1 modified: b/c, a"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			left, err := filepath.Glob(filepath.Join(w.scratch.base.path, "*"))
			if err != nil {
				t.Fatal(err)
			}
			if names := strings.ReplaceAll(strings.Join(left, " "), w.scratch.base.path+"/", ""); names != "history lock" && names != ".gitignore history lock" {
				t.Errorf("left: %s", names)
			}
			os.RemoveAll(dir)
		})
	}
}

// TestOwner: root serves the workspace of someone else, whose identity its runs have.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can serve someone else's workspace")
	}
	const uid, gid = 12345, 12346
	f := onDisk(t, fmt.Sprintf("echo 1 > a; chown -R %d:%d .; chmod 755 $BASE; chmod 750 .", uid, gid))
	txn := f.begin()
	for _, p := range []string{txn.Layer().Upper, txn.Layer().Work} {
		i, err := statAt(unix.AT_FDCWD, p)
		if err != nil || i.uid != uid || i.gid != gid {
			t.Errorf("%s belongs to %d:%d, %v", p, i.uid, i.gid, err)
		}
	}
	if i, _ := statAt(unix.AT_FDCWD, txn.Layer().Upper); i.mode != 0o750 {
		t.Errorf("mode of the layer is %o", i.mode)
	}
	cmd := exec.Command("/bin/sh", "-euc", "cd "+txn.Layer().Upper+"; echo 2 > a; mkdir d; echo 1 > d/x; touch ../work/x; rm ../work/x")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the owner can't work in the layer: %v\n%s", err, out)
	}
	f.land(txn)
	if got := f.host("stat -c %u:%g a d d/x | sort -u"); got != "12345:12346\n" {
		t.Errorf("what landed belongs to %s", got)
	}
}

// TestMoved: a workspace that was swapped for another directory takes nothing.
func TestMoved(t *testing.T) {
	f := onDisk(t, "echo 1 > a")
	txn := f.begin()
	run(t, txn.Layer(), "echo 2 > a")
	f.host("mv $BASE/ws $BASE/old; mkdir $BASE/ws")
	if report, err := txn.Land(context.Background()); err == nil || report.Landed {
		t.Errorf("landed: %+v", report)
	}
	if _, err := f.Begin(context.Background(), "r9"); err == nil {
		t.Error("a run began")
	}
	f.host("grep -qx 1 $BASE/old/a; ! test -e a")
}

// TestOwnDirectory: a directory of the person that has the name of ours is no place for layers, and is left
// as it is; where there is no other, the workspace is refused.
func TestOwnDirectory(t *testing.T) {
	base := t.TempDir()
	dir, state := filepath.Join(base, "ws"), filepath.Join(otherFilesystem(t, base), "state")
	if err := os.MkdirAll(filepath.Join(dir, insideName, "notes"), 0o755); err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(dir, insideName, "notes", "x")
	write(t, note, "mine\n")
	w, err := Open(dir, state, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	beside := w.scratch.base.path
	if filepath.Dir(beside) != base {
		t.Fatalf("layers in %s", beside)
	}
	txn, err := w.Begin(context.Background(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	// It is there in a run, and what a run makes of it is named.
	run(t, txn.Layer(), "grep -qx mine .airlock/notes/x; rm -r .airlock; echo 1 > f")
	report, err := txn.Land(context.Background())
	if err != nil || report.Summary() != "workspace: 1 added: f" || report.WithheldLine() != "withheld: .airlock (reserved name)" {
		t.Errorf("%s; %s; %v", report.Summary(), report.WithheldLine(), err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	// Nor may what lies beside the workspace be taken for ours.
	if err := os.RemoveAll(beside); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(beside, "theirs"), 0o700); err != nil {
		t.Fatal(err)
	}
	w, err = Open(dir, state, Defaults())
	if err == nil {
		w.Close()
		t.Fatal("opened, with layers in ", w.scratch.base.path)
	}
	for _, what := range []string{"notes", "theirs", "not airlock's own"} {
		if !strings.Contains(err.Error(), what) {
			t.Errorf("%v does not say %q", err, what)
		}
	}
	if text, err := os.ReadFile(note); err != nil || string(text) != "mine\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(beside, "theirs")); err != nil {
		t.Error(err)
	}
}
