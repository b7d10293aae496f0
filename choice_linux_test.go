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
		c.try = func(context.Context, time.Duration) (sandbox.Choice, sandbox.Backend) { tries++; return works, nil }
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

// openBackend is a backend that counts how often it is closed.
type openBackend struct {
	sandbox.Backend
	closed int
}

func (b *openBackend) Close() error {
	b.closed++
	return nil
}

// The backend that was tried is the one that runs get, and is closed by the chooser only where nobody gets it.
func TestTriedBackendIsUsed(t *testing.T) {
	tried := &openBackend{}
	next := func() *chooser {
		c := newChooser(t.TempDir())
		c.host = func() string { return "h" }
		c.try = func(context.Context, time.Duration) (sandbox.Choice, sandbox.Backend) {
			return sandbox.Choice{Name: "native"}, tried
		}
		return c
	}
	c := next()
	if b, err := c.open(); err != nil || b != tried {
		t.Errorf("got %v, %v", b, err)
	}
	if err := c.close(); err != nil || tried.closed != 0 {
		t.Errorf("%v; what somebody has was closed %d times", err, tried.closed)
	}
	c = next()
	c.choose()
	if err := errors.Join(c.close(), c.close()); err != nil || tried.closed != 1 {
		t.Errorf("%v; what nobody has was closed %d times", err, tried.closed)
	}
}

// A backend that was begun ahead is the one that the workspace gets, unless the settings ask for another by then.
func TestBackendAhead(t *testing.T) {
	begun, other := &openBackend{}, &openBackend{}
	var s settings
	s.Sandbox.Backend = "auto"
	o := opened{
		settings: s,
		auto:     func() (sandbox.Backend, error) { return other, nil },
		ahead:    s.backendAhead(func() (sandbox.Backend, error) { return begun, nil }, 1, 2),
	}
	if a, err := o.takeAhead(1, 2); err != nil || a != o.ahead || begun.closed != 0 {
		t.Errorf("%v; closed %d times", err, begun.closed)
	}
	a, err := o.takeAhead(3, 2)
	if err != nil || begun.closed != 1 {
		t.Errorf("%v; what was begun for another identity was closed %d times", err, begun.closed)
	}
	if b, err := a.wait(); err != nil || b != other {
		t.Errorf("got %v, %v", b, err)
	}
	if err := (*backendAhead)(nil).close(); err != nil {
		t.Error(err)
	}
}

// What was noted and does not hold any more is said, and forgotten.
func TestChoiceIsVerified(t *testing.T) {
	state := t.TempDir()
	works := sandbox.Choice{Name: "native"}
	next := func() *chooser {
		c := newChooser(state)
		c.host = func() string { return "h" }
		c.try = func(context.Context, time.Duration) (sandbox.Choice, sandbox.Backend) { return works, nil }
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
