package overlay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (f *fixture) undo(run string) Report {
	f.t.Helper()
	report, err := f.Undo(context.Background(), run)
	if err != nil {
		f.t.Fatal(err)
	}
	return report
}

// states are those of the history, the newest first.
func (f *fixture) states() string {
	f.t.Helper()
	landings, err := f.History(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	var out []string
	for _, l := range landings {
		out = append(out, l.State)
	}
	return strings.Join(out, " ")
}

// everyKind is a workspace and a run that changes it in every way.
const (
	everyKindBefore = `mkdir -p d/e/f ro empty gone/deep/deeper; echo 1 > a; echo 1 > x; chmod 640 x; echo del > del; ln -s a l; ln -s a lgone
		echo 1 > gone/deep/deeper/g; ln -s g gone/deep/deeper/gl; chmod 711 gone/deep; mkdir gone/void; touch -d 2001-02-03 gone/deep gone
		echo r > ro/r; chmod 555 ro; echo 1 > was-file; mkdir was-dir; echo 1 > was-dir/f; echo h > h1; ln h1 h2; mkdir mode
		printf 'bytes' > "$(printf 'odd\377\nname')"; setfattr -n user.note -v kept gone/deep 2>/dev/null || true`
	everyKindRun = `echo 2 > a; chmod 600 x; rm del; ln -sf x l; rm lgone; rm -r gone; echo rr > ro/r || { rm -f ro/r; echo rr > ro/r; }
		rm was-file; mkdir was-file; echo in > was-file/in; rm -r was-dir; echo f > was-dir; echo hh > h1; chmod 700 mode
		mkdir -p new/tree/deep new/void; echo n > new/tree/deep/n; echo b > "$(printf 'odd\377\nname')"; echo s > single; chmod 750 d`
)

// TestUndo: an undo brings back what was, and an undo of that what had landed.
func TestUndo(t *testing.T) {
	for fs, base := range bases(t) {
		t.Run(fs, func(t *testing.T) {
			f := newFixture(t, base, everyKindBefore)
			before := undated(snapshot(t, f.dir, true))
			attrs := `getfattr -R -d --absolute-names . 2>/dev/null || true; find gone -type d -printf '%p %T@\n'`
			beforeAttrs := f.host(attrs)
			landed := f.landed(everyKindRun, "")
			if len(landed.Conflicts) > 0 {
				t.Fatalf("%+v", landed)
			}
			after := undated(snapshot(t, f.dir, true))
			for i := range 4 {
				// The first undo takes the run back, the second one the undo, and so forth.
				report := f.undo("")
				if !report.Landed || len(report.Conflicts) > 0 || len(report.Notes) > 0 {
					t.Fatalf("undo %d: %+v", i, report)
				}
				want := before
				if i%2 == 1 {
					want = after
				}
				if diff := cmp.Diff(want, undated(snapshot(t, f.dir, true))); diff != "" {
					t.Fatalf("undo %d (-want +got):\n%s", i, diff)
				}
				if i == 0 {
					if diff := cmp.Diff(beforeAttrs, f.host(attrs)); diff != "" {
						t.Errorf("attributes and times (-want +got):\n%s", diff)
					}
				}
			}
			if got := f.states(); got != "kept undone undone undone undone" {
				t.Errorf("history: %s", got)
			}
			var notKept *NotKeptError
			if _, err := f.Undo(context.Background(), "r1"); !errors.As(err, &notKept) || !notKept.Undone {
				t.Errorf("a second undo of one run: %v", err)
			}
			if left := f.leftovers(); left != "" {
				t.Errorf("left: %s", left)
			}
		})
	}
}

// TestUndoEdited: what someone changed since a run landed stays, and what was before the run goes
// beside it.
func TestUndoEdited(t *testing.T) {
	const (
		before = `echo 1 > mod; echo 1 > del; mkdir gone; echo 1 > gone/a; echo 1 > gone/b; mkdir mode; echo 1 > restored; echo 1 > same-size; echo 1 > moved`
		run    = `echo 2 > mod; rm del; rm -r gone; mkdir new; echo n > new/a; echo n > new/b; echo n > added; chmod 700 mode; echo 2 > restored; echo 2 > same-size; echo 2 > moved`
		since  = `echo host > mod; echo host > del; mkdir gone; echo host > gone/a; echo host > new/b; echo host > new/c; echo host > added; chmod 711 mode
			rm restored; touch -r same-size $BASE/t; echo 3 > same-size; touch -r $BASE/t same-size; mv moved elsewhere`
	)
	f := onDisk(t, before)
	f.landed(run, "")
	f.host(since)
	report := f.undo("r1")
	id := ""
	if len(report.Conflicts) > 0 {
		_, id, _ = strings.Cut(report.Conflicts[len(report.Conflicts)-1].KeptAs, ".conflict-")
	}
	beside := func(p string) Conflict { return Conflict{Path: p, KeptAs: p + ".conflict-" + id} }
	gone := func(p string) Conflict { return Conflict{Path: p, KeptAs: p + ".conflict-" + id, Gone: true} }
	want := Report{
		Landed: true, Undo: true, Of: "r1", Added: []string{"gone/b"}, Deleted: []string{"new/a"},
		Conflicts: []Conflict{
			{Path: "added"},
			beside("del"), beside("gone/a"), beside("mod"),
			{Path: "mode"},
			gone("moved"),
			{Path: "new/b"},
			{Path: "new/c"},
			gone("restored"), beside("same-size"),
		},
	}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Fatalf("report (-want +got):\n%s", diff)
	}
	f.host(fmt.Sprintf(`for i in mod del gone/a added new/b new/c; do grep -qx host $i; done; grep -qx 3 same-size; grep -qx 2 elsewhere
		for i in mod del gone/a restored same-size moved; do grep -qx 1 $i.conflict-%s; done; grep -qx 1 gone/b; ! test -e new/a; ! test -e restored
		test "$(stat -c %%a mode)" = 711`, id))
}

// TestUndoInTurn: runs that are taken back one after the other, the last one first, leave what was there before each.
func TestUndoInTurn(t *testing.T) {
	f := onDisk(t, "echo 0 > f; mkdir -p t/u mode; echo 1 > t/u/x; ln -s f l")
	runs := []string{
		"rm -r t; echo t > t; echo 1 > f", "rm t; ln -s f t; echo 2 > f; ln -sf g l",
		"rm t; mkdir -p t/deep; echo n > t/new; echo n > t/deep/n; chmod 750 t; chmod 700 mode; echo 3 > f", "echo 4 > t/new; echo 4 > t/deep/m; echo 4 > f; rm l; chmod 711 mode",
		"rm -r t mode; rm f; mkdir f; echo 5 > f/in",
	}
	var before []map[string]string
	for _, run := range runs {
		before = append(before, undated(snapshot(t, f.dir, true)))
		f.landed(run, "")
	}
	for i := range slices.Backward(runs) {
		report := f.undo(fmt.Sprintf("r%d", i+1))
		if len(report.Conflicts) > 0 {
			t.Fatalf("undo of r%d: %+v", i+1, report)
		}
		if diff := cmp.Diff(before[i], undated(snapshot(t, f.dir, true))); diff != "" {
			t.Fatalf("undo of r%d (-want +got):\n%s", i+1, diff)
		}
	}
}

// TestUndoInTurnEdited: what someone changes between the two stays.
func TestUndoInTurnEdited(t *testing.T) {
	f := onDisk(t, "echo 0 > f; mkdir mine; echo 1 > mine/p")
	f.landed("echo 1 > f; mkdir -p new/sub; echo 1 | tee new/x new/y new/sub/x > new/z", "")
	f.landed("echo 2 > f; rm -r new", "")
	f.undo("r2")
	f.host("echo 3 > f; echo 3 > new/x; mv mine new/; rm new/sub/x; echo 3 > new/sub/x")
	var got []string
	for _, c := range f.undo("r1").Conflicts {
		got = append(got, c.Path)
	}
	if diff := cmp.Diff([]string{"f", "new/mine", "new/sub", "new/x"}, got); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
	f.host("grep -qx 3 f; grep -qx 3 new/x; test -e new/mine/p; grep -qx 3 new/sub/x; ! test -e new/y; grep -qx 0 f.conflict-*")
}

// TestUndoMovedInto: a directory that someone moved into one that a run made stays, although its files are older
// than the landing. What later runs did there is no reason to keep anything.
func TestUndoMovedInto(t *testing.T) {
	for name, tt := range map[string]struct{ since, later, want, check string }{
		"moved in":      {since: "mv mine new/", want: "new/mine", check: "test -e new/mine/deep/q; test -e new/mine/p; ! test -e new/y; ! test -e new/sub"},
		"moved deeper":  {since: "mv mine new/sub/", want: "new/sub/mine", check: "test -e new/sub/mine/deep/q; ! test -e new/y; ! test -e new/sub/x"},
		"swapped":       {since: "mv new/sub away; mv mine new/sub", want: "new/sub", check: "test -e new/sub/deep/q; ! test -e new/y; test -e away/x"},
		"added to":      {since: "echo 1 > new/sub/mine", want: "new/sub/mine", check: "test -e new/sub/mine; ! test -e new/y; ! test -e new/sub/x"},
		"later run":     {later: "rm new/y; rm new/sub/z; rm new/sub/deep/z", check: "! test -e new"},
		"run and moved": {later: "rm new/y", since: "mv mine new/", want: "new/mine", check: "test -e new/mine/deep/q; ! test -e new/sub"},
	} {
		t.Run(name, func(t *testing.T) {
			f := onDisk(t, "mkdir -p mine/deep; echo 1 > mine/p; echo 1 > mine/deep/q")
			f.landed("mkdir -p new/sub/deep; echo 1 | tee new/sub/x new/sub/z new/sub/deep/z > new/y", "")
			if tt.later != "" {
				f.landed(tt.later, "")
			}
			f.host(tt.since)
			report := f.undo("r1")
			got := ""
			for _, c := range report.Conflicts {
				got += c.Path
			}
			if got != tt.want {
				t.Errorf("conflicts %q, want %q", got, tt.want)
			}
			f.host(tt.check)
		})
	}
}

// TestUndoObeyed: an undo makes no git directory around what landed in it when it was none.
func TestUndoObeyed(t *testing.T) {
	for name, tt := range map[string]struct{ since, want string }{
		"nothing changed": {"", ""},
		"a configuration": {"echo '[core]' > x.git/config", "x.git"},
		"a hook":          {"echo x > x.git/hooks/post-checkout", "x.git"},
		"links":           {"rm -r x.git/refs; ln -s ../elsewhere x.git/refs", "x.git"},
	} {
		t.Run(name, func(t *testing.T) {
			f := onDisk(t, "mkdir -p x.git/objects/pack x.git/refs/heads x.git/hooks; echo '[user]' > x.git/config; echo ref: refs/heads/main > x.git/HEAD")
			f.landed("rm x.git/HEAD", "")
			if tt.since != "" {
				if got := f.landed(tt.since, ""); len(got.Withheld) > 0 {
					t.Fatalf("%+v", got)
				}
			}
			report := f.undo("r1")
			got := ""
			for _, w := range report.Withheld {
				got += w.Path
			}
			if got != tt.want {
				t.Errorf("withheld %q, want %q: %+v", got, tt.want, report)
			}
			if f.host("ls x.git") == "" || (tt.want == "") != strings.Contains(f.host("ls x.git"), "HEAD") {
				t.Errorf("x.git holds %s", f.host("ls x.git"))
			}
		})
	}
}

// TestUndoDiscards: where conflicts discard, an undo is all or nothing.
func TestUndoDiscards(t *testing.T) {
	f := onDisk(t, "echo 1 > a; echo 1 > b", func(c *Config) { c.OnConflict = "discard" })
	f.landed("echo 2 > a; echo 2 > b", "")
	f.host("echo host > b")
	report := f.undo("")
	if want := "workspace: discarded 2 changes (conflict: b changed meanwhile)"; report.Summary() != want {
		t.Errorf("got %s, want %s", report.Summary(), want)
	}
	f.host("grep -qx 2 a; grep -qx host b")
	if got := f.states(); got != "kept" {
		t.Errorf("history: %s", got)
	}
}

// TestUndoOlder: a run can be taken back though others landed after it.
func TestUndoOlder(t *testing.T) {
	f := onDisk(t, "echo 1 > a; echo 1 > b; mkdir d")
	f.landed("echo 2 > a; echo 1 > d/new", "")
	f.landed("echo 2 > b; echo 2 > d/other", "")
	f.landed("echo 3 > a", "")
	if report := f.undo("r2"); report.Summary() != "workspace: 1 modified, 1 deleted: b, d/other" {
		t.Errorf("undo of r2: %s", report.Summary())
	}
	if report := f.undo("r1"); len(report.Conflicts) != 1 || report.Conflicts[0].Path != "a" {
		t.Errorf("undo of r1: %s", report.Summary())
	}
	f.host("grep -qx 3 a; grep -qx 1 a.conflict-*; grep -qx 1 b; ! test -e d/new")
	if _, err := f.Undo(context.Background(), "nobody"); !errors.Is(err, ErrNoLanding) {
		t.Errorf("an unknown run: %v", err)
	}
}

// An undo that takes nothing back, since all of it was changed, leaves the run one that can be taken back; what it puts
// beside is the version from before the run.
func TestUndoOfWhatChanged(t *testing.T) {
	f := onDisk(t, "echo 0 > a; echo 0 > b")
	f.landed("echo 1 > a; echo 1 > b", "")
	f.host("echo mine > a; rm b")
	report := f.undo("")
	if len(report.Conflicts) != 2 || !report.Undo {
		t.Fatalf("%+v", report)
	}
	want := "workspace: 2 conflicts: a changed meanwhile and was kept, the version from before the run is " + report.Conflicts[0].KeptAs +
		"; b was removed meanwhile and stays so, the version from before the run is " + report.Conflicts[1].KeptAs
	if got := report.Summary(); got != strings.Replace(want, "; b was", ", b was", 1) && got != want {
		t.Errorf("%s", got)
	}
	f.host("grep -qx mine a; grep -qx 0 a.conflict-*; grep -qx 0 b.conflict-*; test ! -e b")
	if got := f.states(); strings.Contains(got, "undone") {
		t.Errorf("the history is %q", got)
	}
	f.undo("r1") // once more, not refused
	if report := f.undo(""); report.Of != "r1" || len(report.Conflicts) != 2 {
		t.Errorf("the last run that can be taken back: %+v", report)
	}
}

// What a run replaced or removed of another user's comes back too: as a copy where it may not be linked. If it may not be read
// either nothing is taken back, and where it is kept is said.
func TestUndoOfAnotherUsersFiles(t *testing.T) {
	const inside = "AIRLOCK_OVERLAY_TEST_NOBODY"
	if os.Getenv(inside) == "" {
		if os.Geteuid() != 0 {
			t.Skip("only root has files of another user's to give; root's half of the tests plays this")
		}
		const nobody = 65534
		base, err := os.MkdirTemp("", "nobody")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(base)
		for name, mode := range map[string]os.FileMode{"readable": 0o644, "removed": 0o644, "closed": 0o600} {
			if err := os.WriteFile(filepath.Join(base, name), []byte("1\n"), mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Mkfifo(filepath.Join(base, "pipe"), 0o644); err != nil {
			t.Fatal(err)
		}
		self := filepath.Join(base, "self.test")
		if err := errors.Join(copyExecutable(self), os.Chown(base, nobody, nobody), os.Chmod(base, 0o755)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v")
		cmd.Dir = base
		cmd.Env = append(os.Environ(), inside+"=1", "TMPDIR="+base, "HOME="+base)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Fatalf("as another user: %v\n%s", err, out)
		}
		return
	}
	f := onDisk(t, "mv ../../readable ../../removed ../../closed ../../pipe .; echo 1 > mine")
	f.landed("sed -i s/1/2/ readable; rm removed; echo 2 > mine; echo n > new", "")
	report := f.undo("")
	if len(report.Conflicts) > 0 || len(report.Notes) != 2 || !strings.Contains(strings.Join(report.Notes, ""), "readable was another user's") {
		t.Errorf("%+v", report)
	}
	f.host("! test -e new; grep -qx 1 mine; grep -qx 1 readable; grep -qx 1 removed; test -O readable")

	for _, name := range []string{"closed", "pipe"} {
		f.landed("rm -f "+name+"; echo "+name+" > mine", "")
		_, err := f.Undo(context.Background(), "")
		if err == nil || !strings.Contains(err.Error(), name+": it is another user's") || !strings.Contains(err.Error(), "/history/") {
			t.Errorf("of what can't be copied: %v", err)
		}
		f.host("! test -e " + name + "; grep -qx " + name + " mine")
	}
}

// copyExecutable copies the test's own binary to where another user can execute it.
func copyExecutable(to string) error {
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	return os.WriteFile(to, binary, 0o755)
}
