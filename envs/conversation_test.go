package envs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"airlock/envs"
	"airlock/envs/envstest"
)

// index is a set of wheels that have what governed installing must get right.
func index() []envstest.Wheel {
	module := func(name, version string, requires ...string) envstest.Wheel {
		file := strings.ReplaceAll(name, "-", "_") + ".py"
		return envstest.Wheel{Name: name, Version: version, Requires: requires, Files: map[string]string{file: "V = '" + version + "'\n"}}
	}
	clobber := module("clobber", "1.0")
	clobber.Files["six.py"] = "V = 'clobbered'\n"
	return []envstest.Wheel{
		module("six", "1.15.0"), module("six", "1.16.0"), module("six", "1.17.0"),
		module("needs-six", "1.0", "six>=1.16"), module("needs-old-six", "1.0", "six<1.17"), module("flex", "1.0", "six"), module("flex", "2.0", "six>=1.17"),
		module("Zope.Interface", "5.0"), module("sixx", "1.0"), clobber,
	}
}

type world struct {
	t         *testing.T
	dir       string
	installer *envstest.Installer
	config    envs.Packages
	python    envs.Python
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir(), installer: &envstest.Installer{Wheels: index()}, config: envs.DefaultPackages()}
	w.config.Index = "http://user:secret@index.test/simple"
	t.Cleanup(func() { // what is sealed can't be removed by t
		_ = filepath.WalkDir(w.dir, func(name string, d os.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(name, 0o700)
			}
			return nil
		})
	})
	return w
}

func (w *world) begin() *envs.Conversation {
	w.t.Helper()
	store, err := envs.OpenStore(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	python := filepath.Join(w.dir, "python3")
	if err := os.WriteFile(python, nil, 0o755); err != nil {
		w.t.Fatal(err)
	}
	c, err := envs.Begin(w.t.Context(), envs.Options{Store: store, Installer: w.installer, Find: envs.FindOptions{System: []string{python}}, Packages: w.config, Python: w.python, MostBytes: 1 << 30})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// install plans and applies; the plan must need no question.
func install(c *envs.Conversation, name string, requirements ...string) (envs.Installed, *envs.Plan, error) {
	p, err := c.Plan(context.Background(), envs.Want{Environment: name, Requirements: requirements}, nil)
	if err != nil {
		return envs.Installed{}, p, err
	}
	if len(p.Decision.Ask) > 0 {
		return envs.Installed{}, p, fmt.Errorf("must be asked: %v", p.Asked())
	}
	if p.Already || len(p.Changes) == 0 {
		return envs.Installed{Additive: true}, p, nil
	}
	done, err := c.Apply(context.Background(), p, nil)
	return done, p, err
}

// sees gives what a run of an environment has of a module.
func (w *world) sees(c *envs.Conversation, name, module string) string {
	w.t.Helper()
	tree, err := c.Mount(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	defer tree.Release()
	if tree == nil {
		return "no tree"
	}
	text, err := os.ReadFile(filepath.Join(tree.Root, "lib/python3.11/site-packages", module+".py"))
	if err != nil {
		return "none"
	}
	return strings.Trim(strings.TrimSpace(strings.TrimPrefix(string(text), "V = ")), "'")
}

func set(packages []envs.Package) string {
	var words []string
	for _, p := range packages {
		words = append(words, p.Name+" "+p.Version)
	}
	return strings.Join(words, ", ")
}

func TestInstalling(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six", "needs-six", "needs-old-six", "flex", "zope-interface", "clobber"}
	c := w.begin()
	for i, step := range []struct {
		requirement string
		set         string
		additive    bool
		already     bool
		err         string
	}{
		{"six==1.16.0", "six 1.16.0", true, false, ""},
		{"six", "six 1.16.0", true, true, ""},
		{"six==1.17.0", "six 1.17.0", false, false, ""}, // never "already installed", and not additive
		{"needs-six", "needs-six 1.0, six 1.17.0", true, false, ""},
		{"zope_interface", "needs-six 1.0, six 1.17.0, zope-interface 5.0", true, false, ""},
		{"Zope.Interface>=5", "needs-six 1.0, six 1.17.0, zope-interface 5.0", true, true, ""},
		{"needs-old-six", "", false, false, "No matching distribution"}, // six==1.17.0 was asked for, and does not fit
		{"clobber", "", false, false, "six 1.17.0 and clobber 1.0 both install"},
		{`six==1.15.0; python_version<"3"`, "needs-six 1.0, six 1.17.0, zope-interface 5.0", true, false, ""}, // nothing, and not "already"
		{"six==1.16.0", "needs-six 1.0, six 1.16.0, zope-interface 5.0", false, false, ""},
		{"needs-old-six", "needs-old-six 1.0, needs-six 1.0, six 1.16.0, zope-interface 5.0", true, false, ""},
		{"flex<2", "flex 1.0, needs-old-six 1.0, needs-six 1.0, six 1.16.0, zope-interface 5.0", true, false, ""},
	} {
		before, err := c.Store().Environment("default")
		if err != nil {
			t.Fatal(err)
		}
		done, p, err := install(c, "default", step.requirement)
		now, nowErr := c.Store().Environment("default")
		if nowErr != nil {
			t.Fatal(nowErr)
		}
		if step.err != "" {
			want := strings.ReplaceAll(step.err, "six 1.17.0 and clobber 1.0", "")
			if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) || now.Generation != before.Generation {
				t.Errorf("%d: %s: error %v, want %q; generation %d -> %d", i, step.requirement, err, step.err, before.Generation, now.Generation)
			}
			continue
		}
		if err != nil {
			t.Errorf("%d: %s: %v", i, step.requirement, err)
			continue
		}
		if set(now.Packages) != step.set || done.Additive != step.additive || p.Already != step.already {
			t.Errorf("%d: %s: has %q, additive %t, already %t; want %q, %t, %t", i, step.requirement, set(now.Packages), done.Additive, p.Already, step.set, step.additive, step.already)
		}
	}
	if got := w.sees(c, "default", "six"); got != "1.16.0" {
		t.Errorf("runs see six %s", got)
	}
	w.clean()
}

// clean asserts that no installation left anything, and that every layer is whole.
func (w *world) clean() {
	w.t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, "work"))
	if err != nil || len(entries) > 0 {
		w.t.Errorf("left in work: %v, %v", entries, err)
	}
	layers, err := os.ReadDir(filepath.Join(w.dir, "layers"))
	if err != nil {
		w.t.Error(err)
	}
	for _, l := range layers {
		for _, part := range []string{"layer.json", "root/lib/python3.11/site-packages"} {
			if _, err := os.Stat(filepath.Join(w.dir, "layers", l.Name(), part)); err != nil {
				w.t.Errorf("a layer is not whole: %v", err)
			}
		}
	}
}

// While a conversation installs for itself, the environment below changes by another server, and the conversation by a
// second call: nothing of any of them is lost.
func TestConversationMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six", "needs-six", "flex", "sixx", "zope-interface"}
	c, other := w.begin(), w.begin()
	plan := func(requirement string) *envs.Plan {
		t.Helper()
		p, err := c.Plan(t.Context(), envs.Want{Environment: "default", Requirements: []string{requirement}, Conversation: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	mine, second := plan("needs-six"), plan("flex")
	meanwhile := sync.OnceValue(func() error {
		for _, name := range []string{"sixx", "zope-interface"} {
			if _, _, err := install(other, "default", name); err != nil {
				return err
			}
		}
		return nil
	})
	began := make(chan struct{})
	var once sync.Once
	w.installer.Before = func(_ context.Context, step string) error {
		if step != "install" {
			return nil
		}
		first := false
		once.Do(func() { first = true })
		if !first {
			return nil
		}
		close(began)
		return meanwhile()
	}
	var calls sync.WaitGroup
	calls.Go(func() {
		<-began
		if _, err := c.Apply(t.Context(), second, nil); !errors.Is(err, envs.ErrChanged) {
			t.Errorf("what was planned before: %v", err)
		}
	})
	if _, err := c.Apply(t.Context(), mine, nil); err != nil {
		t.Error(err)
	}
	calls.Wait()
	for module, want := range map[string]string{"needs_six": "1.0", "six": "1.17.0", "sixx": "1.0", "Zope.Interface": "5.0", "flex": "none"} {
		if got := w.sees(c, "default", module); got != want {
			t.Errorf("the conversation sees %s %s, want %s", module, got, want)
		}
	}
	for module, want := range map[string]string{"needs_six": "none", "sixx": "1.0", "Zope.Interface": "5.0"} {
		if got := w.sees(other, "default", module); got != want {
			t.Errorf("the other one sees %s %s, want %s", module, got, want)
		}
	}
}

// What a conversation asks for is its own, on top of the named environment; the next one finds the layer.
func TestConversation(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six", "needs-six", "flex", "zope-interface"}
	c, other := w.begin(), w.begin()
	if _, _, err := install(c, "default", "six==1.16.0"); err != nil {
		t.Fatal(err)
	}
	ask := func(c *envs.Conversation, requirement string) {
		t.Helper()
		p, err := c.Plan(t.Context(), envs.Want{Environment: "default", Requirements: []string{requirement}, Conversation: true}, nil)
		if err == nil {
			_, err = c.Apply(t.Context(), p, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ask(c, "needs-six")
	if got := w.sees(c, "default", "needs_six"); got != "1.0" {
		t.Errorf("the conversation sees %s", got)
	}
	if got := w.sees(other, "default", "needs_six"); got != "none" {
		t.Errorf("another conversation sees %s", got)
	}
	if _, _, err := install(other, "default", "zope-interface"); err != nil {
		t.Fatal(err)
	}
	if a, b := w.sees(c, "default", "Zope.Interface"), w.sees(c, "default", "needs_six"); a != "5.0" || b != "1.0" {
		t.Errorf("after an installation by another one: %s, %s", a, b)
	}
	fetched, installed := w.installer.Steps("fetch"), w.installer.Steps("install")
	ask(other, "needs-six")
	if w.installer.Steps("fetch") != fetched || w.installer.Steps("install") != installed {
		t.Error("the same set was fetched or installed again")
	}
	ask(c, "six==1.17.0; python_version>'2'") // in place of what is there, for this conversation only
	if a, b := w.sees(c, "default", "six"), w.sees(other, "default", "six"); a != "1.17.0" || b != "1.16.0" {
		t.Errorf("six is %s here and %s there", a, b)
	}
	if err := c.Use("fresh"); err != nil {
		t.Fatal(err)
	}
	if name, chosen := c.Current(); name != "fresh" || !chosen || w.sees(c, "fresh", "six") != "no tree" {
		t.Errorf("after use: %s, %t", name, chosen)
	}
}

func TestBase(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"needs-six", "needs-old-six", "six"}
	w.python.Base = []string{"six==1.17.0"}
	deps := filepath.Join(t.TempDir(), "site")
	if err := errors.Join(os.MkdirAll(deps, 0o755), os.WriteFile(filepath.Join(deps, "mine.py"), []byte("V = 'mine'\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	w.python.Deps = []string{deps}
	c := w.begin()
	if a, b := w.sees(c, "default", "six"), w.sees(c, "default", "mine"); a != "1.17.0" || b != "mine" {
		t.Errorf("the base and deps: %s, %s", a, b)
	}
	if _, p, err := install(c, "default", "six"); err != nil || !p.Already {
		t.Errorf("what the base has: %v, %+v", err, p)
	}
	if _, _, err := install(c, "default", "needs-six"); err != nil {
		t.Error(err)
	}
	if _, _, err := install(c, "default", "needs-old-six"); err == nil {
		t.Error("the base was replaced")
	}
	if a, b := w.sees(c, "default", "six"), w.sees(c, "default", "needs_six"); a != "1.17.0" || b != "1.0" {
		t.Errorf("with a layer: %s, %s", a, b)
	}
	if err := os.WriteFile(filepath.Join(deps, "mine.py"), []byte("V = 'new'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := w.sees(c, "default", "mine"); got != "new" {
		t.Errorf("deps that changed: %s", got)
	}
}

// Several servers at once install the same and different sets; nothing is lost.
func TestTogether(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six", "needs-six", "flex", "zope-interface", "sixx"}
	all := []string{"six==1.17.0", "needs-six", "flex", "zope-interface", "sixx", "needs-six", "six==1.17.0", "sixx"}
	var work sync.WaitGroup
	for _, requirement := range all {
		c := w.begin()
		work.Go(func() {
			for range 50 {
				_, _, err := install(c, "default", requirement)
				if err == nil {
					return
				}
				if !errors.Is(err, envs.ErrChanged) {
					t.Errorf("%s: %v", requirement, err)
					return
				}
			}
			t.Errorf("%s: changed meanwhile each time", requirement)
		})
	}
	work.Wait()
	c := w.begin()
	e, err := c.Store().Environment("default")
	if got := set(e.Packages); err != nil || got != "flex 2.0, needs-six 1.0, six 1.17.0, sixx 1.0, zope-interface 5.0" {
		t.Errorf("has %q, %v", got, err)
	}
	w.clean()
}

// Garbage is collected, but for what is used.
func TestCollecting(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six", "sixx"}
	c := w.begin()
	for _, requirement := range []string{"six==1.16.0", "six==1.17.0"} {
		if _, _, err := install(c, "default", requirement); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := c.Mount(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	count := func(kind string) int {
		entries, err := os.ReadDir(filepath.Join(w.dir, kind))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range entries {
			if e.IsDir() {
				n++
			}
		}
		return n
	}
	want := envs.Garbage{Layers: 1, Wheels: 1, Trees: 1}
	for _, dryRun := range []bool{true, false} {
		got, err := c.Store().Collect(t.Context(), 0, dryRun)
		if err != nil {
			t.Fatal(err)
		}
		if want.Bytes = got.Bytes; got.Bytes == 0 || got != want {
			t.Errorf("dry run %t: %+v, want %+v and some bytes", dryRun, got, want)
		}
		if dryRun && (count("layers") != 2 || count("wheels") != 2) {
			t.Error("a dry run removed something")
		}
	}
	if l, wheels, trees := count("layers"), count("wheels"), count("trees"); l != 1 || wheels != 1 || trees != 1 {
		t.Errorf("%d layers, %d wheels, %d trees are left, want one of each", l, wheels, trees)
	}
	if _, err := os.Stat(tree.Root); err != nil {
		t.Errorf("a tree in use is gone: %v", err)
	}
	tree.Release()
	if _, err := c.Store().Collect(t.Context(), 0, false); err != nil {
		t.Fatal(err)
	}
	if n := count("trees"); n != 0 {
		t.Errorf("%d trees are left that nobody uses", n)
	}
	if got := w.sees(c, "default", "six"); got != "1.17.0" {
		t.Errorf("a run after the collection sees %s", got)
	}
}
