package envs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
