package envs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
		{"clobber", "", false, false, "six 1.17.0 and clobber 1.0 both install python3.11/site-packages/six.py"},
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
			if err == nil || !strings.Contains(err.Error(), step.err) || now.Generation != before.Generation {
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
	for _, name := range []string{"default", "empty"} {
		if _, _, err := install(c, name, "needs-old-six"); err == nil || !strings.Contains(err.Error(), "with python.base, which no installation changes (six 1.17.0)") {
			t.Errorf("what does not fit to the base, into %s: %v", name, err)
		}
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

// What is kept of packages can't be written, in a layer and in the trees that share its files.
func TestSealed(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six", "needs-six"}
	c := w.begin()
	for _, requirement := range []string{"six==1.16.0", "needs-six"} {
		if _, _, err := install(c, "default", requirement); err != nil {
			t.Fatal(err)
		}
	}
	files := 0
	for _, kind := range []string{"layers", "trees"} {
		roots, err := filepath.Glob(filepath.Join(w.dir, kind, "*", "root"))
		if err != nil || len(roots) != 2 {
			t.Fatalf("%s: %q, %v", kind, roots, err)
		}
		for _, root := range roots {
			err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
				if err != nil || name == root || d.Type()&fs.ModeSymlink != 0 {
					return err
				}
				info, err := d.Info()
				if err == nil && (info.Mode().Perm()&0o222 != 0 || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0) {
					t.Errorf("%s has the mode %v", name, info.Mode())
				}
				files++
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	if files < 20 {
		t.Errorf("%d files were looked at", files)
	}
}
