package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"airlock/sandbox"
)

// A choice is made again when anything that it depends on has changed, and only then.
func TestChoiceIsNoted(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	host, works, tries := "h1", sandbox.Choice{Name: "native", Why: "tried"}, 0
	next := func() *chooser {
		c := newChooser(state)
		c.host = func() string { return host }
		c.try = func(context.Context, time.Duration) sandbox.Choice { tries++; return works }
		return c
	}
	refused := sandbox.Choice{Name: "bwrap", Why: "tried", Refused: []sandbox.Refused{{Name: "native", Err: errors.New("forbidden")}}}
	for _, step := range []struct {
		name   string
		change func()
		want   string
		tried  bool
	}{
		{"the first", func() {}, "native", true},
		{"another process", func() {}, "native", false},
		{"another host", func() { host = "h2" }, "native", true},
		{"a file that says nothing", func() {
			if err := os.WriteFile(filepath.Join(state, "backend.json"), []byte(`{"host":"h2","backend":"direct"}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "native", true},
		{"half a file", func() {
			if err := os.WriteFile(filepath.Join(state, "backend.json"), []byte(`{"host":"h2`), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "native", true},
		{"a host that says nothing", func() { host = "" }, "native", true},
		{"the same", func() {}, "native", true},
		{"with a but", func() { host, works = "h3", refused }, "bwrap", true},
		{"which is not noted", func() {}, "bwrap", true},
	} {
		step.change()
		before := tries
		c := next()
		got := c.choose()
		if got.Name != step.want || (tries > before) != step.tried {
			t.Errorf("%s: %q, tried %v; want %q, %v", step.name, got.Name, tries > before, step.want, step.tried)
		}
		c.choose()
		if tries > before+1 {
			t.Errorf("%s: tried twice", step.name)
		}
	}
}

// What was noted and does not hold any more is said, and forgotten.
func TestChoiceIsVerified(t *testing.T) {
	state := t.TempDir()
	works := sandbox.Choice{Name: "native"}
	next := func() *chooser {
		c := newChooser(state)
		c.host = func() string { return "h" }
		c.try = func(context.Context, time.Duration) sandbox.Choice { return works }
		return c
	}
	first := next()
	first.choose()
	if err := first.verify(t.Context()); err != nil {
		t.Errorf("the process that tried: %v", err)
	}
	second := next()
	second.choose()
	if err := second.verify(t.Context()); err != nil || !second.noted {
		t.Errorf("noted %v, and it holds: %v", second.noted, err)
	}
	works = sandbox.Choice{Refused: []sandbox.Refused{{Name: "native", Err: errors.New("forbidden now")}}}
	if err := second.verify(t.Context()); err == nil || !strings.Contains(err.Error(), "forbidden now") {
		t.Errorf("it does not hold any more: %v", err)
	}
	if third := next(); third.choose().Name != "" {
		t.Errorf("it was not forgotten: %v", third.choice)
	}
}

func TestIsolationIsDescribed(t *testing.T) {
	one, two := describeIsolation(), describeIsolation()
	if one != two || len(one) != 64 {
		t.Errorf("%q and %q", one, two)
	}
}
