package overlay

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
)

func (f *fixture) hide(patterns ...string) {
	f.t.Helper()
	h, err := NewHidden(patterns)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.Hide(h); err != nil {
		f.t.Fatal(err)
	}
}

// TestHide goes through what a run sees of hidden paths, and what lands of what it does to them. Each
// case's control is its check: that the host has what the run could not see.
func TestHide(t *testing.T) {
	for i, tt := range []struct {
		name              string
		setup, hide, run  string // HOLD in run waits for what the host does meanwhile
		during, meanwhile string
		want              Report
		check             string
	}{
		{
			name:  "they are absent in every way",
			setup: "echo SECRET > .env; mkdir -p a/b sec; echo SECRET > a/b/.env; echo SECRET > sec/key; ln -s ../.env a/link; touch a/b/v",
			hide:  ".env sec/",
			run: "! cat .env; ! stat a/b/.env; ! cat a/link; ! ls sec; ! ls -d .env; ! (ls -aR | grep -e env -e sec); " +
				`! grep -rs SECRET .; test "$(ls a/b)" = v; ! rmdir sec; ! mv .env x; ! ln .env x; ! chmod 777 .env; ! (cat < .env)`,
			check: "grep -q SECRET .env a/b/.env sec/key a/link",
		},
		{
			name:   "also while the host replaces or makes them",
			setup:  "echo SECRET > .env; mkdir a sec",
			hide:   "/.env /a/.env /sec/**",
			run:    "! cat .env; ! cat a/.env; HOLD; ! cat .env; ! cat a/.env; ! cat sec/new; touch v",
			during: "echo SECRET > .e; mv .e .env; echo SECRET > a/.env; echo SECRET > sec/new",
			want:   Report{Added: []string{"v"}},
			check:  "grep -q SECRET .env && grep -q SECRET a/.env && grep -q SECRET sec/new",
		},
		{
			name:  "what a run writes there is withheld, whether something is there or not",
			setup: "echo SECRET > .env; mkdir -p a sec; echo SECRET > sec/key",
			hide:  ".env sec/ none/** *.key",
			run:   "echo mine > .env; cat .env; echo mine > a/.env; mkdir sec; echo mine > sec/key; mkdir -p none/x new/d; echo y > none/x/y; echo z > new/.env; echo k > new/d/a.key; echo ok > a/ok; echo gone > b.key; rm b.key",
			want: Report{Added: []string{"a/ok"}, Withheld: []Withheld{
				{".env", "hidden"},
				{"a/.env", "hidden"},
				{"new/.env", "hidden"},
				{"new/d/a.key", "hidden"},
				{"none/x", "hidden"},
				{"sec", "hidden"},
			}},
			check: "grep -q SECRET .env; grep -q SECRET sec/key; ! test -e a/.env; ! test -e none; ! test -e new; test -f a/ok",
		},
		{
			name:  "a file in the place of a hidden directory",
			setup: "mkdir sec; echo SECRET > sec/key",
			hide:  "sec/",
			run:   "echo file > sec",
			want:  Report{Withheld: []Withheld{{"sec", "hidden"}}},
			check: "grep -q SECRET sec/key",
		},
		{
			name:  "a removed directory keeps what is hidden in it",
			setup: "mkdir -p d/s e/s; touch d/a d/s/b e/f; echo SECRET > d/s/.env; echo SECRET > e/.env",
			hide:  ".env",
			run:   "rm -rf d; rm -rf e; mkdir e; echo new > e/g",
			want: Report{
				Added: []string{"e/g"}, Deleted: []string{"d/a", "d/s/b", "e/f", "e/s"},
				Withheld: []Withheld{{"d/s", whyHolds}},
			},
			check: `grep -q SECRET d/s/.env; grep -q SECRET e/.env; test "$(find d -type f)" = d/s/.env; test "$(ls e)" = g`,
		},
		{
			name:  "a directory that became a file, and one that became a link",
			setup: "mkdir d e; echo SECRET > d/.env; echo SECRET > e/.env",
			hide:  ".env",
			run:   "rm -rf d e; echo file > d; ln -s . e",
			want:  Report{Withheld: []Withheld{{"d", "in the place of hidden paths"}, {"e", "in the place of hidden paths"}}},
			check: "grep -q SECRET d/.env; grep -q SECRET e/.env",
		},
		{
			name:  "moved aside by a copy, the hidden file stays",
			setup: "mkdir -p d/s; echo SECRET > d/s/.env; echo v > d/v",
			hide:  ".env",
			run:   "cp -a d other; rm -rf d",
			want:  Report{Added: []string{"other/s", "other/v"}, Deleted: []string{"d/v"}, Withheld: []Withheld{{"d/s", whyHolds}}},
			check: "grep -q SECRET d/s/.env; grep -q v other/v; ! test -e other/s/.env; test -d other/s",
		},
		{
			name:  "directories on the way land nothing by themselves",
			setup: "mkdir -m 0750 a; mkdir a/b; touch a/b/.env a/b/v; touch -d 2001-01-01 a/b; chmod 2775 a/b",
			hide:  ".env",
			run:   `test "$(stat -c '%a %Y' a/b)" = "2775 978307200"; ls -la a/b > /dev/null; chmod 0600 a/b/v; : >> a/b/v; chmod 0644 a/b/v`,
			check: `test "$(stat -c %a a/b)" = 2775; test "$(stat -c %a a)" = 750`,
		},
		{
			name:  "changes in them land as ever",
			setup: "mkdir -p a/b; touch a/b/.env a/b/del; echo 1 > a/b/v; mkdir a/gone; touch a/.env",
			hide:  ".env",
			run:   "echo 2 > a/b/v; rm a/b/del; mkdir a/b/n; touch a/b/n/x; rmdir a/gone; chmod 700 a",
			want:  Report{Added: []string{"a/b/n/x"}, Modified: []string{"a", "a/b/v"}, Deleted: []string{"a/b/del", "a/gone"}},
			check: `grep -q 2 a/b/v; ! test -e a/gone; test -e a/b/n/x; test -e a/b/.env; test "$(stat -c %a a)" = 700`,
		},
		{
			name:      "conflicts are found in them",
			setup:     "mkdir a; touch a/.env; echo 1 > a/v; echo 1 > a/del",
			hide:      ".env",
			run:       "echo run > a/v; rm a/del; echo run > a/new",
			meanwhile: "echo host > a/v; echo host > a/del; echo host > a/new; chmod 711 a",
			want:      Report{Conflicts: []Conflict{{Path: "a/del"}, {Path: "a/new", KeptAs: "a/new.conflict-r1"}, {Path: "a/v", KeptAs: "a/v.conflict-r1"}}},
			check:     `grep -q host a/v; grep -q run a/v.conflict-r1; grep -q host a/del; test "$(stat -c %a a)" = 711`,
		},
		{
			name:   "a mode that the host sets meanwhile is not taken back",
			setup:  "mkdir a; touch a/.env a/v",
			hide:   ".env",
			run:    "HOLD; echo x > a/v",
			during: "chmod 777 a",
			want:   Report{Modified: []string{"a/v"}},
			check:  `test "$(stat -c %a a)" = 777`,
		},
		{
			name:  "a hidden directory's parent lands when it is new on both sides",
			setup: "mkdir -p a/b/c; touch a/b/c/.env; ln -s a/b l; echo SECRET > a/b/key",
			hide:  "a/b/c/** /l/key",
			run:   "test -d a/b/c; ! ls a/b/c | grep .; echo x > a/b/c/.env; touch a/b/c/y; rm -rf a; mkdir a; touch a/z; cat l || :",
			want:  Report{Added: []string{"a/z"}, Deleted: []string{"a/b/key"}, Withheld: []Withheld{{"a/b/c", whyHolds}}},
			check: "test -f a/b/c/.env; test -f a/z; ! test -e a/b/key",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, base := range bases(t) {
				if i > 2 && name != "disk" {
					continue // a mask is made of the same things everywhere
				}
				t.Run(name, func(t *testing.T) {
					f := newFixture(t, base, tt.setup)
					f.hide(strings.Fields(tt.hide)...)
					txn := f.begin()
					f.runHeld(txn, tt.run, tt.during)
					if tt.meanwhile != "" {
						f.host(tt.meanwhile)
					}
					tt.want.Landed = true
					got := f.land(txn)
					if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("report (-want +got):\n%s", diff)
					}
					f.host(tt.check)
				})
			}
		})
	}
}

// runHeld runs a script that holds at the word HOLD until the host has done something.
func (f *fixture) runHeld(txn *Txn, script, during string) {
	f.t.Helper()
	held, goOn := filepath.Join(f.base, "held"), filepath.Join(f.base, "go-on")
	for _, path := range []string{held, goOn} {
		if err := unix.Mkfifo(path, 0o600); err != nil && err != unix.EEXIST {
			f.t.Fatal(err)
		}
	}
	var host sync.WaitGroup
	if strings.Contains(script, "HOLD") {
		host.Go(func() { f.host("cat ../held; " + during + "; echo > ../go-on") })
	}
	run(f.t, txn.Layer(), strings.ReplaceAll(script, "HOLD", "echo > ../held; cat ../go-on"))
	host.Wait()
}

// TestHideSeveralRuns has runs of before and after what is hidden changed, at once.
func TestHideSeveralRuns(t *testing.T) {
	f := onDisk(t, "echo SECRET > .env; mkdir a b; touch a/v b/v; chmod 750 a")
	f.hide(".env")
	first := f.begin()
	second := f.begin()
	if first.mask != second.mask {
		t.Error("two masks for the same")
	}
	f.host("echo SECRET > a/.env; touch top")
	third := f.begin()
	if third.mask == first.mask {
		t.Error("one mask for different things")
	}
	run(t, third.Layer(), "! cat a/.env; test -e top; echo 3 > a/v")
	run(t, first.Layer(), "! cat .env; echo 1 > b/v")
	if r := f.land(first); !cmp.Equal(r.Modified, []string{"b/v"}) {
		t.Errorf("%+v", r)
	}
	run(t, second.Layer(), "! cat .env; rm -rf a")
	if r := f.land(third); !cmp.Equal(r.Modified, []string{"a/v"}) {
		t.Errorf("%+v", r)
	}
	// What appeared after the second began is not hidden from it, and removed for nobody.
	f.land(second)
	f.host("grep -q SECRET a/.env")
	if left := f.leftovers(); left != "mask-2" {
		t.Errorf("left: %s", left)
	}
	// A mode that changed shows in the mask of the next run.
	f.host("chmod 711 a; rm -f a/*conflict*; touch -d 2001-01-01 a")
	fourth := f.begin()
	run(t, fourth.Layer(), `test "$(stat -c '%a %Y' a)" = "711 978307200" || { stat a; exit 1; }; touch a/x`)
	if r := f.land(fourth); len(r.Modified) > 0 || !cmp.Equal(r.Added, []string{"a/x"}) {
		t.Errorf("%+v", r)
	}
	f.host("rm -rf .env a")
	fifth := f.begin()
	run(t, fifth.Layer(), "echo x > b/y")
	f.land(fifth)
	usage := f.begin()
	run(t, usage.Layer(), "true")
	if n, err := usage.FinalUsage(context.Background()); err != nil || n != 0 {
		t.Errorf("a run that wrote nothing used %d bytes: %v", n, err)
	}
	f.land(usage)
}

// TestHideUnreadable hides as a whole what can't be searched for hidden names.
func TestHideUnreadable(t *testing.T) {
	if rootRights() {
		t.Skip("root reads every directory")
	}
	f := onDisk(t, "mkdir -p d/closed; echo SECRET > d/closed/x.key; chmod 311 d/closed")
	f.hide("*.key")
	txn := f.begin()
	run(t, txn.Layer(), "! cat d/closed/x.key; test -d d")
	f.land(txn)
	f.host("grep -q SECRET d/closed/x.key")
}

// TestHideInMounts hides in what is mounted in a workspace, and in the private copy that stands in for the
// workspace then.
func TestHideInMounts(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	f := onDisk(t, "echo SECRET > .env; mkdir -p a sec; echo SECRET > a/.env; echo SECRET > sec/key; echo v > a/v")
	for _, dir := range []string{"data", "data/inner", "sec/tmp", "plain"} {
		mountOn(t, "tmpfs", "none", filepath.Join(f.dir, dir), 0, "mode=755")
		write(t, filepath.Join(f.dir, dir, ".env"), "SECRET\n")
		write(t, filepath.Join(f.dir, dir, "v"), "seen\n")
	}
	f.hide(".env", "sec/", "!/plain/v")
	txn := f.begin()
	runOn(t, txn.Layers(), `! cat .env; ! cat a/.env; ! ls -d sec; ! cat data/.env; ! cat data/inner/.env; ! cat plain/.env
		test "$(cat data/v data/inner/v plain/v | sort -u)" = seen; ! (grep -rs SECRET .); ! (ls -aR | grep -e env -e sec)
		echo mine > .env; echo mine > plain/.env; rm -rf a; echo ok > ok`)
	report := f.land(txn)
	if !cmp.Equal(report.Added, []string{"ok"}) || !cmp.Equal(report.Deleted, []string{"a/v"}) {
		t.Errorf("%+v", report)
	}
	for _, w := range report.Withheld {
		if strings.Contains(w.Path, "sec") || strings.Contains(strings.Join(report.Notes, " "), "sec") {
			t.Errorf("told of what is hidden: %+v", report)
		}
	}
	f.host("grep -q SECRET .env; grep -q SECRET a/.env; grep -q SECRET sec/key; grep -q SECRET plain/.env; grep -q SECRET data/inner/.env; test -e sec/tmp/v")
}

// TestHideAway hides in a workspace whose filesystem holds no layers, and so no mask.
func TestHideAway(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	f := onOverlay(t, "echo SECRET > .env; mkdir -p a sec; echo SECRET > a/.env; echo SECRET > sec/key; echo v > a/v")
	f.hide(".env", "sec/")
	_, report := f.otherwise("! cat .env; ! cat a/.env; ! ls -d sec; test -e a/v; echo mine > .env; rm -rf a; echo ok > ok", func() {})
	if !cmp.Equal(report.Added, []string{"ok"}) || !cmp.Equal(report.Deleted, []string{"a/v"}) {
		t.Errorf("%+v", report)
	}
	f.host("grep -q SECRET .env; grep -q SECRET a/.env; grep -q SECRET sec/key")
}

// TestHideReviewed lands a run that waited: what was hidden when it ran stays so, whatever the configuration
// says by then.
func TestHideReviewed(t *testing.T) {
	for name, now := range map[string][]string{"as then": {".env"}, "not any more": nil} {
		t.Run(name, func(t *testing.T) {
			f := onDisk(t, "mkdir d; echo SECRET > d/.env; echo v > d/v; echo SECRET > .env")
			f.hide(".env")
			parked := f.parked("rm -rf d; echo mine > .env; mkdir n; echo mine > n/.env; echo y > n/y")
			f.hide(now...)
			report := f.reviewed(parked)
			if !cmp.Equal(report.Added, []string{"n/y"}) || !cmp.Equal(report.Deleted, []string{"d/v"}) {
				t.Errorf("%+v", report)
			}
			f.host("grep -q SECRET d/.env && grep -q SECRET .env && ! test -e n/.env")
		})
	}
}
