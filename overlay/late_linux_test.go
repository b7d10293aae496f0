package overlay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
)

// between lands a run, with something happening between the plan and its first step.
func (f *fixture) between(txn *Txn, happens func()) (Report, error) {
	f.t.Helper()
	p, _, err := txn.planned(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	l := txn.lander(p)
	if err := l.stage(context.Background()); err != nil {
		f.t.Fatal(err)
	}
	happens()
	err = l.run("", "")
	l.report.sort()
	return l.report, err
}

// TestLate: an edit after the plan was made, which only the steps themselves can see.
func TestLate(t *testing.T) {
	f := onDisk(t, "for i in a b c d e; do echo 1 > $i; done; mkdir dir; echo 1 > dir/x")
	txn := f.begin()
	run(t, txn.Layer(), "echo run > a; rm b; echo run > new; echo run > c; rm d; mkdir newdir; echo run > newdir/x; rm -r dir")
	report, err := f.between(txn, func() {
		f.host("echo host > a; echo host > b; echo host > new; rm c d; mkdir newdir; echo host > newdir/y; echo host > dir/y")
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := txn.end(); err != nil {
		t.Fatal(err)
	}
	want := Report{
		Landed:  true,
		Deleted: []string{"d", "dir/x"}, // d is gone, as the run had it
		Conflicts: []Conflict{
			{Path: "a", KeptAs: "a.conflict-r1"}, {Path: "b"}, {Path: "c", KeptAs: "c.conflict-r1", Gone: true}, {Path: "new", KeptAs: "new.conflict-r1"}, {Path: "newdir", KeptAs: "newdir.conflict-r1"},
		},
	}
	if diff := cmp.Diff(want, report, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	f.host(`grep -qx host a; grep -qx run a.conflict-r1; grep -qx host b; grep -qx host new; grep -qx run new.conflict-r1
		! test -e c; grep -qx run c.conflict-r1; ! test -e d; test "$(ls newdir)" = y; grep -qx run newdir.conflict-r1/x; test "$(ls dir)" = y`)
}

// TestTakeBack: a step that fails late leaves the workspace as it was, to the last byte and time.
func TestTakeBack(t *testing.T) {
	f := onDisk(t, `mkdir -p d/e ro empty; for i in 1 2 3; do echo $i > f$i; echo $i > d/e/$i; done; echo 1 > ro/a; chmod 555 ro
		ln -s x l; chmod 750 empty; echo z > was-file; mkdir gone; echo 1 > gone/x`)
	list := `find . -printf '%p %y %m %l %s ' -exec sh -c 'test -f "$0" && cat "$0"; echo' {} \; | sort; find . -type f -printf '%p %T@ %i\n' | sort`
	before := f.host(list)
	txn := f.begin()
	run(t, txn.Layer(), `echo run > f1; rm f2; echo run > ro/a; rm -r d; mkdir -p new/deep; echo 1 > new/deep/x; ln new/deep/x linked; chmod 555 new; rm l; ln -s y l
		chmod 700 empty; rm was-file; mkdir was-file; echo 1 > was-file/x; chmod 555 was-file; rm -r gone; echo zz > zz`)
	_, err := f.between(txn, func() {
		// The last thing to come in is not there.
		staged, err := filepath.Glob(filepath.Join(txn.landing.path, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range staged {
			if b, _ := os.ReadFile(path); string(b) == "zz\n" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	if err == nil || !strings.Contains(err.Error(), "zz") || strings.Contains(err.Error(), "taken back") {
		t.Fatalf("error is %v", err)
	}
	if err := txn.end(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, f.host(list)); diff != "" {
		t.Errorf("the workspace is not what it was (-before +after):\n%s", diff)
	}
	if left := f.leftovers(); left != "" {
		t.Errorf("left: %s", left)
	}
}

// TestLateFailure: whatever stops a landing, be it before its first step, in the middle or right
// before its end, nothing has landed, the error says what it was, and the next landing is not hindered.
func TestLateFailure(t *testing.T) {
	for _, tt := range []struct {
		name, want    string
		happens, mend func(t *testing.T, f *fixture)
	}{
		{
			"no journal can be written", "is a directory",
			func(t *testing.T, f *fixture) { makeDirs(t, filepath.Join(f.Workspace.state, journalName+".new", "x")) },
			func(t *testing.T, f *fixture) { removePath(t, filepath.Join(f.Workspace.state, journalName+".new")) },
		},
		{
			"no history can be made", "not a directory",
			func(t *testing.T, f *fixture) { writeFile(t, filepath.Join(f.scratch.base.path, historyName)) },
			func(t *testing.T, f *fixture) { removePath(t, filepath.Join(f.scratch.base.path, historyName)) },
		},
		{
			"a directory can't be changed", "operation not permitted",
			func(t *testing.T, f *fixture) { immutable(t, filepath.Join(f.dir, "z"), true) },
			func(t *testing.T, f *fixture) { immutable(t, filepath.Join(f.dir, "z"), false) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := onDisk(t, "mkdir z d; echo 1 > a; echo 1 > z/b; echo 1 > d/c; ln -s a l")
			before := snapshot(t, f.dir, true)
			txn := f.begin()
			run(t, txn.Layer(), "echo 2 > a; rm -r d; rm l; echo 2 > new; echo 2 > z/b; chmod 700 z")
			tt.happens(t, f)
			report, err := txn.Land(context.Background())
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "taken back") {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			if report.Landed || report.Discarded == 0 || report.Reason != "landing failed" {
				t.Errorf("%+v", report)
			}
			tt.mend(t, f)
			if diff := cmp.Diff(before, snapshot(t, f.dir, true)); diff != "" {
				t.Errorf("the workspace is not what it was (-before +after):\n%s", diff)
			}
			if cut, err := f.interruptedLanding(); cut || err != nil {
				t.Errorf("there is a journal: %v, %v", cut, err)
			}
			if report := f.landed("echo 3 > a", ""); report.Summary() != "workspace: 1 modified: a" {
				t.Errorf("the next landing: %s", report.Summary())
			}
			if kept := f.Interrupted(); len(kept) > 0 {
				t.Errorf("kept %v", kept)
			}
		})
	}
}

func makeDirs(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func removePath(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// immutable sets or clears the flag that lets nobody change a directory, which only root can.
func immutable(t *testing.T, path string, on bool) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const immutableFlag = 0x10 // FS_IMMUTABLE_FL
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if on {
		flags |= immutableFlag
	} else {
		flags &^= immutableFlag
	}
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags))
	}
	if err != nil {
		t.Skipf("no immutable directories here: %v", err)
	}
}

// TestLivingServer: a server that lives on takes back what another one left, before its next run sees
// the workspace, and says so.
func TestLivingServer(t *testing.T) {
	k := newKillable(t, t.TempDir())
	defer k.remove()
	before := undated(hosts(snapshot(t, k.dir, true)))
	w, err := Open(k.dir, k.state, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	open, err := w.Begin(context.Background(), "open")
	if err != nil {
		t.Fatal(err)
	}
	if !k.killedAt("land", 350) {
		t.Fatal("it was not killed")
	}
	if cmp.Equal(before, undated(snapshot(t, k.dir, true))) {
		t.Fatal("the landing that was killed had not changed anything")
	}
	txn, err := w.Begin(context.Background(), "next")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, undated(snapshot(t, k.dir, true))); diff != "" {
		t.Errorf("at the beginning of the next run (-want +got):\n%s", diff)
	}
	// The one that was open all the while lands, too.
	for i, txn := range []*Txn{open, txn} {
		if err := os.WriteFile(filepath.Join(txn.Layer().Upper, fmt.Sprint("by", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		report, err := txn.Land(context.Background())
		if err != nil || !report.Landed {
			t.Fatalf("%+v, %v", report, err)
		}
		if got := strings.Contains(strings.Join(report.Notes, "\n"), "run k1 had been cut off, and was taken back"); got != (i == 0) {
			t.Errorf("notes of landing %d: %q", i, report.Notes)
		}
	}
}

// TestDamagedJournal: a journal that can't be read is kept, told of, and does not stop anything.
func TestDamagedJournal(t *testing.T) {
	f := onDisk(t, "echo 1 > a")
	for i, text := range []string{"", "airlock landing 1 sha256:00\n{}", "{"} {
		if err := os.WriteFile(f.journalPath(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if report := f.landed("echo >> a", ""); len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "is damaged") {
			t.Errorf("%+v", report)
		}
		kept := f.Interrupted()
		if len(kept) != i+1 {
			t.Fatalf("kept %v", kept)
		}
		if got, err := os.ReadFile(filepath.Join(kept[i], journalName)); string(got) != text {
			t.Errorf("kept %q, %v", got, err)
		}
	}
}

// TestDamagedJournalOfTheDead: where the journal of a landing that was cut off can't be read, what it
// took out of the workspace is kept.
func TestDamagedJournalOfTheDead(t *testing.T) {
	k := newKillable(t, t.TempDir())
	defer k.remove()
	if !k.killedAt("land", 350) {
		t.Fatal("it was not killed")
	}
	journals, err := filepath.Glob(filepath.Join(k.state, "workspaces", "*", journalName))
	if err != nil || len(journals) != 1 {
		t.Fatalf("journals %v, %v", journals, err)
	}
	if err := os.Truncate(journals[0], 100); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and it is told of with every later start
		w, err := Open(k.dir, k.state, Defaults())
		if err != nil {
			t.Fatal(err)
		}
		kept := w.Interrupted()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if len(kept) != 2 {
			t.Fatalf("kept %v", kept)
		}
		found, err := filepath.Glob(filepath.Join(k.state, "workspaces", "*", "layers", "interrupted-k1", landingName, "*"))
		if err != nil || len(found) < 10 {
			t.Errorf("kept of the landing: %v, %v", found, err)
		}
	}
}

// TestHeldDirectory: a file that someone makes in a removed directory, through a descriptor, while the
// landing goes on, brings the directory back.
func TestHeldDirectory(t *testing.T) {
	f := onDisk(t, "mkdir gone; echo 1 > gone/x; echo 1 > a")
	held, err := os.Open(filepath.Join(f.dir, "gone"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	txn := f.begin()
	run(t, txn.Layer(), "rm -r gone; echo 2 > a")
	made := false
	txn.landing.hook = func() {
		if names, err := held.Readdirnames(-1); made || err != nil || len(names) > 0 {
			return
		}
		if _, err := os.Lstat(held.Name()); !os.IsNotExist(err) {
			return
		}
		if b, err := os.ReadFile(filepath.Join(f.dir, "a")); err != nil || string(b) != "2\n" {
			return
		}
		fd, err := unix.Openat(int(held.Fd()), "late", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			t.Error(err)
			return
		}
		unix.Close(fd)
		made = true
	}
	report := f.land(txn)
	if !made {
		t.Fatal("the directory was not held at the right moment")
	}
	if want := []Conflict{{Path: "gone"}}; !cmp.Equal(report.Conflicts, want) {
		t.Errorf("conflicts %v", report.Conflicts)
	}
	f.host("test -e gone/late; ! test -e gone/x; grep -qx 2 a")
	f.undo("")
	f.host("test -e gone/late; grep -qx 1 gone/x; grep -qx 1 a")
}
