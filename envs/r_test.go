package envs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"airlock/internal/clearing"
)

func TestParseRRequirement(t *testing.T) {
	for _, tt := range []struct {
		text, canonical string
		yes, no         []string
	}{
		{"jsonlite", "jsonlite", []string{"1.8.0", "0.1"}, nil},
		{"data.table (>= 1.14)", "data.table>=1.14", []string{"1.14", "1.14.0", "1.14-1", "2"}, []string{"1.13.9", "x"}},
		{"R6>=2.5-1", "R6>=2.5-1", []string{"2.5.1", "2.5-2"}, []string{"2.5", "2.5-0"}},
		{"x1 != 2.0", "x1!=2.0", []string{"2.0.1", "1"}, []string{"2.0", "2-0"}},
		{"x1 (== 1.0)", "x1==1.0", []string{"1.0"}, []string{"1"}},
	} {
		r, err := parseRRequirement(tt.text)
		if err != nil || r.String() != tt.canonical {
			t.Errorf("%q: %q, %v; want %q", tt.text, r.String(), err, tt.canonical)
		}
		for want, list := range map[bool][]string{true: tt.yes, false: tt.no} {
			for _, v := range list {
				if r.Contains(v) != want {
					t.Errorf("%q contains %s: %t", tt.text, v, !want)
				}
			}
		}
	}
	for _, text := range []string{
		"", "x", "1x", "-r", "a b", "a/b", "jsonlite; system('x')", "jsonlite@1.0", "a.", "jsonlite (>= 1.0", "jsonlite >= 1.0)", "jsonlite>=", "jsonlite>=1..2", "jsonlite\n", " jsonlite", "jsonlite ~= 1.0",
		"https://index.test/x.tar.gz", "github::a/b", "../x", strings.Repeat("a", 200), "j\u0131sonlite",
	} {
		if r, err := parseRRequirement(text); err == nil {
			t.Errorf("%q is taken for %v", text, r)
		}
	}
}

// What is installed stays as long as it satisfies what is required; R and the host bring what need not be
// installed; and what can't be is named, with what needs it.
func TestResolveR(t *testing.T) {
	row := func(name, version, requires string) rRow {
		return rRow{Name: name, Version: version, Requires: requires, File: name + "_" + version + ".tar.gz"}
	}
	index := rIndex{
		Packages: []rRow{
			row("low", "1.1", "R (>= 3.5), methods"), row("high", "2.1", "low (>= 1.0-1), stats, Matrix (>= 1.5)"), row("newer", "1.0", "low (>= 9)"), row("lost", "1.0", "nosuch"),
			row("round", "1.0", "trip"), row("trip", "1.0", "round"), row("odd", "1.0", "low (> 1"), row("needs11", "1.0", "low (>= 1.1)"), row("matrix2", "1.0", "Matrix (>= 2)"), row("Matrix", "2.0", ""),
			row("spoken", "1.0\nfine", ""),
			{Name: "placed", Version: "1.0", File: "../x.tar.gz"},
		},
		System: []rRow{{Name: "methods", Version: "4.2.2"}, {Name: "stats", Version: "4.2.2"}, {Name: "Matrix", Version: "1.5-3"}},
	}
	digest := strings.Repeat("a", 64)
	old := Package{Name: "low", Version: "1.0-2", SHA256: digest, Wheel: "low_1.0-2.tar.gz"}
	for _, tt := range []struct {
		asked, set, fresh string
		have              []Package
		upgrade           bool
	}{
		{"high", "high 2.1, low 1.1", "high low", nil, false},
		{"high", "high 2.1, low 1.0-2", "high", []Package{old}, false},
		{"low", "low 1.0-2", "", []Package{old}, false},
		{"low", "low 1.1", "low", []Package{old}, true},
		{"needs11", "low 1.1, needs11 1.0", "low needs11", []Package{old}, false},
		{"round", "round 1.0, trip 1.0", "round trip", nil, false},
		{"matrix2", "Matrix 2.0, matrix2 1.0", "Matrix matrix2", nil, false},
		{"round low", "low 1.0-2, round 1.0, trip 1.0", "round trip", []Package{old}, false},
		{"newer", "the repository has low 1.1, and low>=9 is asked for (needed by newer)", "", nil, false},
		{"lost", "the repository has no package nosuch for this R (needed by lost)", "", nil, false},
		{"low>=3", "the repository has low 1.1, and low>=3 is asked for", "", nil, false},
		{"High", "the repository has no package High for this R", "", nil, false},
		{"spoken", "the repository's entry of spoken can't be read", "", nil, false},
		{"placed", "the repository's entry of placed can't be read", "", nil, false},
		{"odd", "the repository's entry of odd can't be read", "", nil, false},
	} {
		asked, err := parseAllIn(LanguageR, strings.Fields(tt.asked))
		if err != nil {
			t.Fatal(err)
		}
		set, fresh, err := resolveR(index, asked, Environment{Language: LanguageR, Packages: tt.have}, tt.upgrade)
		got := shortSet(set)
		if err != nil {
			got = err.Error()
		}
		names := map[string]bool{}
		for _, r := range fresh {
			names[r.Name] = true
		}
		wanted := strings.Fields(tt.fresh)
		for _, name := range wanted {
			if !names[name] {
				t.Errorf("%s: %s is not fetched", tt.asked, name)
			}
		}
		if got != tt.set || len(names) != len(wanted) {
			t.Errorf("%s on %s, upgrade %t: %q, fetched %v; want %q", tt.asked, shortSet(tt.have), tt.upgrade, got, names, tt.set)
		}
	}
	order := shortSet(inOrder([]Package{{Name: "aa", Requires: []string{"zz>=1"}, Version: "1"}, {Name: "zz", Version: "1", Requires: []string{"mm"}}, {Name: "mm", Version: "1"}}))
	if order != "mm 1, zz 1, aa 1" {
		t.Errorf("built in the order %s", order)
	}
}

// A file that is not what the index says was torn on its way.
func TestMD5OfR(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x_1.0.tar.gz")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for sum, ok := range map[string]bool{"": true, "9dd4e461268c8034f5c8564e155c67a6": true, "9DD4E461268C8034F5C8564E155C67A6": true, strings.Repeat("0", 32): false} {
		if err := checkMD5(file, rRow{Name: "x", Version: "1.0", File: "x_1.0.tar.gz", MD5: sum}); (err == nil) != ok {
			t.Errorf("%q: %v", sum, err)
		}
	}
}

// fakeR plays R for its steps, and a repository of packages without dependencies, all in one version.
type fakeR struct {
	names   []string
	version string // of the packages; "" is 1.0
	itself  string // the version of R; "" is 4.2.2
	steps   []string
	// stray are paths that a package puts beside itself into the library.
	stray []string
}

func (r *fakeR) Run(_ context.Context, s Step) (Outcome, error) {
	r.steps = append(r.steps, s.Name)
	at := map[string]string{}
	for _, b := range s.Binds {
		at[b.Target] = b.Source
	}
	version := cmp.Or(r.version, "1.0")
	var index rIndex
	for _, n := range r.names {
		file := n + "_" + version + ".tar.gz"
		index.Packages = append(index.Packages, rRow{Name: n, Version: version, File: file, URL: "https://index.test/" + file})
	}
	var answer any
	switch s.Name {
	case "probe":
		answer = map[string]string{"version": cmp.Or(r.itself, "4.2.2"), "platform": "x86_64-pc-linux-gnu", "library": "/usr/lib/R/lib"}
	case "resolve":
		answer = index
	case "fetch":
		for _, p := range index.Packages {
			if err := os.WriteFile(filepath.Join(at["/build"], "wheels", p.File), []byte(p.File), 0o644); err != nil {
				return Outcome{}, err
			}
		}
		answer = struct{}{}
	case "install":
		built, err := r.build(at)
		if err != nil {
			return Outcome{}, err
		}
		answer = rIndex{Packages: built}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{}, os.WriteFile(filepath.Join(at["/build"], "answer.json"), text, 0o644)
}

// build makes a directory in the library for each source package that is to be installed.
func (r *fakeR) build(at map[string]string) (built []rRow, err error) {
	lines, err := os.ReadFile(filepath.Join(at["/build"], "requirements.txt"))
	if err != nil {
		return nil, err
	}
	for _, file := range strings.Fields(string(lines)) {
		if _, err := os.Stat(filepath.Join(at["/wheels"], file)); err != nil {
			return nil, err
		}
		name, version, _ := strings.Cut(strings.TrimSuffix(file, ".tar.gz"), "_")
		built = append(built, rRow{Name: name, Version: version})
		description := filepath.Join(at[rMountPoint], name, "DESCRIPTION")
		if err := errors.Join(os.Mkdir(filepath.Dir(description), 0o755), os.WriteFile(description, []byte(file+" built by "+cmp.Or(r.itself, "4.2.2")), 0o644)); err != nil {
			return nil, err
		}
	}
	for _, path := range r.stray {
		file := filepath.Join(at[rMountPoint], path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// beginWithR begins a conversation in a store below dir, with an R that is played.
func beginWithR(t *testing.T, dir string, host *fakeR, config Packages) *Conversation {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "Rscript"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	store, err := OpenStore(filepath.Join(dir, "envs"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Begin(t.Context(), Options{Store: store, Installer: host, Find: FindOptions{Path: dir}, Packages: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = clearing.Tree(store.dir) // what is sealed t can't remove
	})
	return c
}

// planRPackages plans for the default environment.
func planRPackages(c *Conversation, upgrade bool, names ...string) (*Plan, error) {
	return c.Plan(context.Background(), Want{Environment: "default", Language: LanguageR, Requirements: names, Upgrade: upgrade}, nil)
}

// A library that was made for another R is no use to this one, and is made anew by an installation that may replace what
// is there: all that it was asked for, and not only what the call asks for. The sources are those that were decided on.
func TestAnotherR(t *testing.T) {
	dir, config := t.TempDir(), DefaultPackages()
	config.R.Allow = []string{"low", "high"}
	c := beginWithR(t, dir, &fakeR{names: []string{"low", "high"}}, config)
	p, err := planRPackages(c, false, "low")
	if err == nil {
		_, err = c.Apply(t.Context(), p, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	before, err := c.store.EnvironmentOf(LanguageR, "default")
	if err != nil || len(before.Layers) != 1 {
		t.Fatalf("holds %+v, %v", before, err)
	}
	patched := beginWithR(t, dir, &fakeR{names: []string{"low", "high"}, itself: "4.2.9"}, config)
	if tree, err := patched.MountR(t.Context(), "default"); err != nil || tree == nil {
		t.Errorf("a run with a newer patch of the same R: %v", err)
	} else {
		tree.Release()
	}

	config.R.Allow = []string{"high"} // what is built anew from the same sources was decided on
	host := &fakeR{names: []string{"low", "high"}, itself: "4.3.0"}
	c = beginWithR(t, dir, host, config)
	if _, err := c.MountR(t.Context(), "default"); err == nil || !strings.Contains(err.Error(), "another R (R 4.2 x86_64-pc-linux-gnu; now it is R 4.3 x86_64-pc-linux-gnu)") {
		t.Errorf("a run: %v", err)
	}
	if _, err := planRPackages(c, false, "high"); err == nil || !strings.Contains(err.Error(), "package_install with upgrade makes it anew") {
		t.Errorf("an installation: %v", err)
	}
	p, err = planRPackages(c, true, "high")
	if err != nil {
		t.Fatal(err)
	}
	if p.Additive || p.Already || len(p.Decision.Ask) > 0 || !strings.Contains(p.Question(), "low 1.0 in place of 1.0") {
		t.Errorf("additive %t, already %t, to be asked %v: %s", p.Additive, p.Already, p.Asked(), p.Question())
	}
	done, err := c.Apply(t.Context(), p, nil)
	if err != nil || done.Additive || len(done.Changes) != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	e, err := c.store.EnvironmentOf(LanguageR, "default")
	if err != nil || shortSet(e.Packages) != "high 1.0, low 1.0" || len(e.Layers) != 1 || e.Layers[0] == before.Layers[0] || !slices.Equal(e.Roots, []string{"high", "low"}) {
		t.Errorf("holds %+v, %v", e, err)
	}
	tree, err := c.MountR(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Release()
	if text, err := os.ReadFile(filepath.Join(tree.Root, "low", "DESCRIPTION")); err != nil || string(text) != "low_1.0.tar.gz built by 4.3.0" {
		t.Errorf("runs see %q, %v", text, err)
	}
	if p, err := planRPackages(c, false, "low", "high"); err != nil || !p.Already {
		t.Errorf("after that: %+v, %v", p, err)
	}

	// What the repository has by now is another package, and is asked for.
	c = beginWithR(t, dir, &fakeR{names: []string{"low", "high"}, itself: "4.4.0", version: "2.0"}, config)
	if p, err = planRPackages(c, true, "high"); err != nil || !slices.Equal(p.Asked(), []string{"low"}) {
		t.Errorf("with another version: to be asked %v, %v", p.Asked(), err)
	}
}

// What the configuration refuses is refused by what the index says of it: nothing of it is fetched.
func TestRefusedBeforeItIsFetched(t *testing.T) {
	for _, tt := range []struct {
		approve     string
		allow, deny []string
		granted     bool
		want        string // of the error; "" for none
	}{
		{"ask", nil, nil, false, ""}, // the control: the hash that is asked about is of what was fetched
		{"allowlist", []string{"low"}, nil, false, ""},
		{"allowlist", nil, nil, true, ""},
		{"allowlist", nil, nil, false, `low 1.0 is not on packages.r.allow, and packages.approve is "allowlist"`},
		{"allowlist", []string{"low>=2"}, nil, false, `low 1.0 is not on packages.r.allow`},
		{"ask", []string{"low"}, []string{"low"}, false, `packages.r.deny has "low"`},
	} {
		t.Run(fmt.Sprintf("%s %v %v %t", tt.approve, tt.allow, tt.deny, tt.granted), func(t *testing.T) {
			config := DefaultPackages()
			config.Approve, config.R.Allow, config.R.Deny = tt.approve, tt.allow, tt.deny
			host := &fakeR{names: []string{"low"}}
			c := beginWithR(t, t.TempDir(), host, config)
			if tt.granted {
				if err := c.store.Grant(t.Context(), Grant{Language: LanguageR, Environment: "default", Index: config.R.Repo, Names: []string{"low"}}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := planRPackages(c, false, "low")
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if fetched := slices.Contains(host.steps, "fetch"); fetched != (tt.want == "") {
				t.Errorf("the steps were %q", host.steps)
			}
		})
	}
}

// A package's code builds it, and may put anything into the library. What is kept is the set that was decided on, and
// nothing that goes by another name.
func TestRBuildsWhatWasDecidedOn(t *testing.T) {
	config := DefaultPackages()
	config.R.Allow, config.R.Deny = []string{"low", "high"}, []string{"refused"}
	for _, tt := range []struct{ stray, want string }{
		{"low/extra", ""},
		{"refused/DESCRIPTION", `the installation left "refused", which is no package of the set`},
		{"high/DESCRIPTION", `the installation left "high"`}, // is there already, and not what is built
		{"Low/DESCRIPTION", `the installation left "Low"`},
		{"file", `the installation left "file"`},
		{"00LOCK-low/x", `the installation left "00LOCK-low"`},
	} {
		t.Run(tt.stray, func(t *testing.T) {
			host := &fakeR{names: []string{"high", "low"}}
			c := beginWithR(t, t.TempDir(), host, config)
			for _, name := range []string{"high", "low"} {
				if name == "low" {
					host.stray = []string{tt.stray}
				}
				p, err := planRPackages(c, false, name)
				if err == nil {
					_, err = c.Apply(t.Context(), p, nil)
				}
				want := ""
				if name == "low" {
					want = tt.want
				}
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", name, err, want)
				}
			}
			layers, err := os.ReadDir(c.store.path("layers"))
			if kept := len(layers) == 2; err != nil || kept != (tt.want == "") {
				t.Errorf("layers: %v, %v", layers, err)
			}
		})
	}
}
