package overlay

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var everyReview = flag.Bool("every-review", false, "go through a review with everything that lands directly in the tests, not with some")

// park makes a run wait, or not, if it changed nothing.
func (f *fixture) park(txn *Txn) Report {
	f.t.Helper()
	report, err := txn.Park(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	return report
}

// reviewed lands what waits, if it does.
func (f *fixture) reviewed(parked Report) Report {
	f.t.Helper()
	if parked.Waiting == "" {
		return parked
	}
	report, err := f.LandWaiting(context.Background(), parked.Waiting)
	if err != nil {
		f.t.Fatal(err)
	}
	return report
}

// parked does a run that waits.
func (f *fixture) parked(script string) Report {
	f.t.Helper()
	txn := f.begin()
	run(f.t, txn.Layer(), script)
	return f.park(txn)
}

// restart closes the workspace and opens it with another configuration, as another process does.
func (f *fixture) restart(change ...func(*Config)) {
	f.t.Helper()
	if err := f.Close(); err != nil {
		f.t.Fatal(err)
	}
	c := Defaults()
	for _, ch := range change {
		ch(&c)
	}
	var err error
	if f.Workspace, err = Open(f.dir, f.state, c); err != nil {
		f.t.Fatal(err)
	}
}

// waiting names the runs that wait, with an asterisk where they can't be landed.
func (f *fixture) waiting() string {
	f.t.Helper()
	all, err := f.Waiting(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	var out []string
	for _, r := range all {
		name := r.Run
		if r.Fault != nil {
			name += "*"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// TestPark: what waits is not in the workspace, outlives its server, lands as it would have, and the
// landing can be taken back.
func TestPark(t *testing.T) {
	for fs, base := range bases(t) {
		t.Run(fs, func(t *testing.T) {
			direct := newFixture(t, base, everyKindBefore)
			landed := direct.landed(everyKindRun, "")
			want := undated(snapshot(t, direct.dir, true))

			f := newFixture(t, base, everyKindBefore)
			before := snapshot(t, f.dir, true)
			parked := f.parked(everyKindRun)
			if parked.Waiting != "r1" || parked.Landed || !strings.HasSuffix(parked.Summary(), "(airlock land r1)") {
				t.Fatalf("%+v\n%s", parked, parked.Summary())
			}
			if diff := cmp.Diff(before, snapshot(t, f.dir, true)); diff != "" {
				t.Errorf("the workspace changed (-want +got):\n%s", diff)
			}
			f.restart()
			if f.waiting() != "r1" {
				t.Fatalf("waits: %q", f.waiting())
			}
			waiting, _ := f.Waiting(context.Background())
			if waiting[0].Bytes == 0 || waiting[0].Report.Summary() != parked.Summary() {
				t.Errorf("%+v", waiting[0])
			}
			got := f.reviewed(parked)
			for _, r := range []*Report{&landed, &parked} {
				r.Waiting, r.Landed = "", true
				if diff := cmp.Diff(*r, got); diff != "" {
					t.Errorf("report (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(want, undated(snapshot(t, f.dir, true))); diff != "" {
				t.Errorf("landed (-want +got):\n%s", diff)
			}
			if f.waiting() != "" || f.leftovers() != "" {
				t.Errorf("left: waiting %q, scratch %q", f.waiting(), f.leftovers())
			}
			undone := f.undo("r1")
			if len(undone.Conflicts) > 0 {
				t.Errorf("undo: %+v", undone)
			}
			if diff := cmp.Diff(undated(before), undated(snapshot(t, f.dir, true))); diff != "" {
				t.Errorf("undone (-want +got):\n%s", diff)
			}
		})
	}
}

// TestParkNothing: a run that changed nothing, or nothing that may land, does not wait.
func TestParkNothing(t *testing.T) {
	f := onDisk(t, "echo 1 > a")
	for _, script := range []string{"cat a", "mkdir __pycache__; echo x > __pycache__/x", "echo x > .envrc"} {
		report := f.parked(script)
		if report.Waiting != "" || report.Summary() != "workspace: no changes" || f.waiting() != "" {
			t.Errorf("%s: %+v, waiting %q", script, report, f.waiting())
		}
	}
}

// TestReviewEdited: an edit after the run began to wait is not overwritten, whatever it does to times.
func TestReviewEdited(t *testing.T) {
	f := onDisk(t, "for n in a b c d e; do echo one > $n; done; mkdir dir; echo 1 > dir/f")
	parked := f.parked("for n in a b c d; do echo run > $n; done; rm e; echo run > new; echo run > dir/f")
	f.host(`cp -p a old; echo AAA > a; touch -r old a; rm b; echo mine > new; echo edited > e
		mkdir swapped; cp -p dir/f swapped/f; touch -r dir/f swapped/f; mv dir dir.old; mv swapped dir`)
	f.restart()
	got := f.reviewed(parked)
	want := Report{
		Landed: true, Modified: []string{"c", "d"},
		Conflicts: []Conflict{
			{Path: "a", KeptAs: "a.conflict-r1"}, {Path: "b", KeptAs: "b.conflict-r1", Gone: true}, {Path: "dir/f", KeptAs: "dir/f.conflict-r1"}, {Path: "e"}, {Path: "new", KeptAs: "new.conflict-r1"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.host("grep -qx AAA a; grep -qx run c; grep -qx edited e; grep -qx mine new; grep -qx 1 dir/f; grep -qx run dir/f.conflict-r1")
}

// TestReviewsOverlap: runs that wait don't see each other. The first of two on one file lands, the
// other is in conflict with that; what they don't share lands.
func TestReviewsOverlap(t *testing.T) {
	f := onDisk(t, "echo one > a; mkdir d; echo 1 > d/x; echo 1 > d/y")
	first := f.parked("echo first > a; echo 1 > new1; echo first > d/x; chmod 700 d")
	second := f.parked("grep -qx one a; ! test -e new1; echo second > a; echo 2 > new2; echo second > d/y")
	if got := f.waiting(); got != "r2 r1" {
		t.Errorf("waits: %q", got)
	}
	if got := f.reviewed(first); len(got.Conflicts) > 0 {
		t.Errorf("first: %+v", got)
	}
	got := f.reviewed(second)
	want := Report{Landed: true, Added: []string{"new2"}, Modified: []string{"d/y"}, Conflicts: []Conflict{{Path: "a", KeptAs: "a.conflict-r2"}, {Path: "d"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("second (-want +got):\n%s", diff)
	}
}

// TestReviewRefused: with on_conflict = discard nothing lands, and the run waits on; also where the
// conflict comes in the middle of the landing. What the landing moved and gave back is no conflict.
func TestReviewRefused(t *testing.T) {
	f := onDisk(t, "echo one > a; echo one > b; mkdir d; echo 1 > d/x; mkdir gone; echo 1 > gone/x")
	parked := f.parked("echo run > a; echo run > b; echo run > d/x; rm -r gone; mkdir n; echo 1 > n/x; echo run > zz")
	discard := func(c *Config) { c.OnConflict = "discard" }
	f.restart(discard)
	f.host("echo host > b")
	got := f.reviewed(parked)
	if got.Landed || got.Waiting != "r1" || got.Discarded != 0 || got.Reason != "conflict: b changed meanwhile" || f.waiting() != "r1" {
		t.Errorf("%+v, waiting %q", got, f.waiting())
	}
	f.host("grep -qx one a; grep -qx 1 gone/x; ! test -e zz; echo run > b") // the same as the run's

	armed := true
	f.root.hook = func() {
		if text, _ := os.ReadFile(filepath.Join(f.dir, "a")); armed && string(text) == "run\n" {
			armed = false
			f.host("! test -e zz; echo host > zz")
		}
	}
	got = f.reviewed(parked)
	if got.Landed || got.Waiting != "r1" || got.Reason != "conflict: zz changed meanwhile" || armed {
		t.Errorf("%+v, armed %v", got, armed)
	}
	f.host("grep -qx one a; grep -qx 1 gone/x; grep -qx 1 d/x; ! test -e n; grep -qx host zz; rm zz")
	f.root.hook = nil
	got = f.reviewed(parked)
	if !got.Landed || len(got.Conflicts) > 0 || f.waiting() != "" {
		t.Errorf("%+v, waiting %q", got, f.waiting())
	}
	f.host("grep -qx run a; ! test -e gone; grep -qx run d/x; grep -qx 1 n/x; grep -qx run zz")
}

// TestReviewFilter: what must not land by the configuration of then or of now does not.
func TestReviewFilter(t *testing.T) {
	f := onDisk(t, "echo 1 > then; echo 1 > now", func(c *Config) { c.Protect, c.Ignore = []string{"then"}, []string{"cache"} })
	parked := f.parked("echo run > then; echo run > now; echo run > cache; echo run > log; echo run > .airlock.toml; echo run > free")
	f.restart(func(c *Config) { c.Protect, c.Ignore = []string{"now"}, []string{"log"} })
	got := f.reviewed(parked)
	want := Report{
		Landed: true, Added: []string{"free"},
		Withheld: []Withheld{{".airlock.toml", "protected"}, {"now", "protected"}, {"then", "protected"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.host("! test -e cache; ! test -e log; ! test -e .airlock.toml; grep -qx 1 now; grep -qx 1 then")
}

// TestReviewFaults: what can't be used is named, kept, and can be thrown away. The control is the run
// of each case before its fault.
func TestReviewFaults(t *testing.T) {
	for name, tt := range map[string]struct{ fault, want string }{
		"damaged":     {`sed -i 's/"run":"r1"/"run":"r2"/' $W/record`, "is damaged"},
		"cut off":     {"head -c 100 $W/record > $W/r; mv $W/r $W/record", "is damaged"},
		"gone":        {"rm $W/record", "no such file"},
		"later":       {"sed -i '1s/waiting 1/waiting 2/' $W/record", "is of another version of airlock"},
		"not ours":    {"chmod 777 $W", "is not ours alone"},
		"a link":      {"mv $W $W.x; ln -s $W.x $W", "not a directory"},
		"other place": {"cd ..; mv ws ws.old; cp -a ws.old ws", "is another directory than the one that it worked in"},
	} {
		t.Run(name, func(t *testing.T) {
			f := onDisk(t, "echo one > a")
			parked := f.parked("echo run > a")
			if f.waiting() != "r1" {
				t.Fatalf("waits: %q", f.waiting())
			}
			f.host("W=" + filepath.Join(f.scratch.base.path, waitingName, "r1") + "; " + tt.fault)
			f.restart()
			if f.waiting() != "r1*" {
				t.Errorf("waits: %q", f.waiting())
			}
			_, err := f.LandWaiting(context.Background(), parked.Waiting)
			var refused *ParkedError
			if !errors.As(err, &refused) || refused.Run != "r1" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("land: %v", err)
			}
			if f.host("cat a") != "one\n" || f.waiting() != "r1*" {
				t.Error("it did not stay as it was")
			}
			if _, err := f.DiscardWaiting(context.Background(), "r1"); err != nil || f.waiting() != "" {
				t.Errorf("discard: %v, waits %q", err, f.waiting())
			}
		})
	}
}

// TestReviewNone: a run that does not wait is named with those that do.
func TestReviewNone(t *testing.T) {
	f := onDisk(t, "echo one > a")
	expect := func(run, want string) {
		t.Helper()
		var none *NotWaitingError
		if _, err := f.LandWaiting(context.Background(), run); !errors.As(err, &none) || err.Error() != want {
			t.Errorf("land %q: %v", run, err)
		}
	}
	expect("", "no run waits for review")
	expect("r7", "run r7 does not wait for review; none does")
	f.parked("echo run > a")
	if _, err := f.Begin(context.Background(), "r1"); err == nil {
		t.Error("the id of a run that waits was given again")
	}
	f.parked("echo run > b")
	expect("", "2 runs wait for review: r1, r2")
	expect("../r1", `run ../r1 does not wait for review; these do: r1, r2`)
	report, err := f.DiscardWaiting(context.Background(), "r1")
	if err != nil || report.Discarded != 1 {
		t.Errorf("discard: %+v, %v", report, err)
	}
	if report := f.reviewed(Report{Waiting: "r2"}); !report.Landed || f.host("cat a b") != "one\nrun\n" {
		t.Errorf("%+v", report)
	}
}

// TestDiffWaiting shows what would land now, and changes nothing.
func TestDiffWaiting(t *testing.T) {
	f := onDisk(t, "echo one > a; echo one > b; mkdir gone; echo 1 > x; chmod 755 x")
	f.parked("echo run > a; echo run > b; mkdir n; echo n > n/f; rmdir gone; chmod 700 x; ln -s a l; echo x > .envrc")
	f.host("echo host > b")
	before := snapshot(t, f.dir, true)
	var out strings.Builder
	if err := f.Diff(context.Background(), "r1", &out); err != nil {
		t.Fatal(err)
	}
	const want = `diff a/a b/a
--- a/a
+++ b/a
@@ -1 +1 @@
-one
+run
b changed meanwhile and stays; what the run made of it would be put beside it
diff a/b b/b
--- a/b
+++ b/b
@@ -1 +1 @@
-host
+run
gone: directory removed
diff a/l b/l
new link mode 0777
--- /dev/null
+++ b/l
@@ -0,0 +1 @@
+a
\ No newline at end of file
diff a/n/f b/n/f
new file mode 0644
--- /dev/null
+++ b/n/f
@@ -0,0 +1 @@
+n
diff a/x b/x
old mode 0755
new mode 0700
.envrc is withheld: protected
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, snapshot(t, f.dir, true)); diff != "" || f.waiting() != "r1" || f.leftovers() != "" {
		t.Errorf("changed: %s; waiting %q, scratch %q", diff, f.waiting(), f.leftovers())
	}
}

// TestWaitingIn finds what waits without the workspace, which may be gone.
func TestWaitingIn(t *testing.T) {
	f := onDisk(t, "echo one > a")
	if all, err := WaitingIn(f.state); err != nil || len(all) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
	f.parked("echo run > a")
	if err := os.Rename(f.dir, f.dir+".away"); err != nil {
		t.Fatal(err)
	}
	all, err := WaitingIn(f.state)
	if err := os.Rename(f.dir+".away", f.dir); err != nil {
		t.Fatal(err)
	}
	want := []WaitingRuns{{Workspace: f.dir, Layers: filepath.Join(f.scratch.base.path, waitingName), Runs: []string{"r1"}}}
	if len(all) == 1 {
		want[0].Bytes = max(1, all[0].Bytes)
	}
	if diff := cmp.Diff(want, all); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestReviewAway: where layers lie on another filesystem, which can be memory, nothing waits.
func TestReviewAway(t *testing.T) {
	f := onDisk(t, "echo one > a")
	f.mu.Lock()
	opened := f.openAway()
	f.mu.Unlock()
	if !opened {
		t.Skip("no other filesystem here holds layers")
	}
	txn := f.begin()
	if _, err := txn.Park(context.Background()); err == nil || !strings.Contains(err.Error(), "another filesystem") {
		t.Errorf("park: %v", err)
	}
	f.config.LandOn = "review"
	if _, err := f.Begin(context.Background(), "r2"); err == nil || !strings.Contains(err.Error(), "workspace.land_on") {
		t.Errorf("begin: %v", err)
	}
	if f.leftovers() != "" {
		t.Errorf("left: %s", f.leftovers())
	}
}
