package envs_test

import (
	"strings"
	"testing"

	"airlock/envs"
	"airlock/envs/envstest"
)

// What changes is what is asked for and what that needs: an upgrade takes along what the newer version requires, and
// neither it nor an installation that can't leave all as it is changes what has nothing to do with it.
func TestUpgrading(t *testing.T) {
	wheel := func(name, version string, requires ...string) envstest.Wheel {
		return envstest.Wheel{Name: name, Version: version, Requires: requires}
	}
	w := newWorld(t)
	w.config.Allow = []string{"app", "low", "beside", "other", "fresh", "leaves"}
	w.installer.Wheels = []envstest.Wheel{
		wheel("low", "1.0"), wheel("beside", "1.0"), wheel("other", "1.0"), wheel("leaves", "1.0"), wheel("app", "1.0", "low>=1", "beside>=1", "leaves"),
	}
	c := w.begin()
	if _, _, err := install(c, "default", "app", "other"); err != nil {
		t.Fatal(err)
	}
	w.installer.Wheels = append(w.installer.Wheels,
		wheel("low", "2.0"), wheel("beside", "2.0"), wheel("other", "2.0"), wheel("leaves", "2.0"), wheel("app", "2.0", "low>=2", "beside>=1"))
	for i, step := range []struct {
		requirement string
		upgrade     bool
		set         string
		additive    bool
	}{
		{"app", false, "app 1.0, beside 1.0, leaves 1.0, low 1.0, other 1.0", true},
		{"app", true, "app 2.0, beside 1.0, leaves 1.0, low 2.0, other 1.0", false},
		{"app", true, "app 2.0, beside 1.0, leaves 1.0, low 2.0, other 1.0", true},
		{"fresh", false, "app 2.0, beside 1.0, fresh 1.0, leaves 1.0, low 3.0, other 1.0", false},
		{"other", true, "app 2.0, beside 1.0, fresh 1.0, leaves 1.0, low 3.0, other 2.0", false},
		{"beside<2", true, "app 2.0, beside 1.0, fresh 1.0, leaves 1.0, low 3.0, other 2.0", true},
		{"beside", true, "app 2.0, beside 2.0, fresh 1.0, leaves 1.0, low 3.0, other 2.0", false},
	} {
		if step.requirement == "fresh" {
			w.installer.Wheels = append(w.installer.Wheels, wheel("low", "3.0"), wheel("fresh", "1.0", "low>=3"))
		}
		p, err := c.Plan(t.Context(), envs.Want{Environment: "default", Requirements: []string{step.requirement}, Upgrade: step.upgrade}, nil)
		if err == nil && !p.Already {
			_, err = c.Apply(t.Context(), p, nil)
		}
		if err != nil {
			t.Fatalf("%d: %s: %v", i, step.requirement, err)
		}
		e, err := c.Store().Environment("default")
		if got := set(e.Packages); err != nil || got != step.set || p.Additive != step.additive {
			t.Errorf("%d: %s, upgrade %t: has %q, additive %t, %v; want %q, %t", i, step.requirement, step.upgrade, got, p.Additive, err, step.set, step.additive)
		}
	}
}

// An environment that was made for another Python is no use to this one, and is made anew by an installation that may
// replace what is there: all that it was asked for, and not only what the call asks for.
func TestAnotherPython(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six", "needs-six", "sixx"}
	if _, _, err := install(w.begin(), "default", "six==1.16.0", "needs-six"); err != nil {
		t.Fatal(err)
	}
	w.installer.ABI = "cpython-311d-x86_64-linux-gnu"
	c := w.begin()
	if _, err := c.Mount(t.Context(), "default"); err == nil || !strings.Contains(err.Error(), "another Python") {
		t.Errorf("a run: %v", err)
	}
	if _, _, err := install(c, "default", "sixx"); err == nil || !strings.Contains(err.Error(), "package_install with upgrade makes it anew") {
		t.Errorf("an installation: %v", err)
	}
	p, err := c.Plan(t.Context(), envs.Want{Environment: "default", Requirements: []string{"sixx"}, Upgrade: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	done, err := c.Apply(t.Context(), p, nil)
	if err != nil || done.Additive || len(done.Changes) != 3 || len(p.Decision.Ask) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
	e, err := c.Store().Environment("default")
	if err != nil || set(e.Packages) != "needs-six 1.0, six 1.16.0, sixx 1.0" || len(e.Layers) != 1 {
		t.Errorf("holds %q in %q, %v", set(e.Packages), e.Layers, err)
	}
	if a, b := w.sees(c, "default", "six"), w.sees(c, "default", "sixx"); a != "1.16.0" || b != "1.0" {
		t.Errorf("runs see %s, %s", a, b)
	}
	if _, p, err := install(c, "default", "needs-six"); err != nil || !p.Already {
		t.Errorf("after that: %+v, %v", p, err)
	}
}
