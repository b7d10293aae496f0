package envs_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"airlock/envs"
)

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
	if _, err := c.Use(t.Context(), "fresh"); err != nil {
		t.Fatal(err)
	}
	if name, chosen := c.Current(); name != "fresh" || !chosen || w.sees(c, "fresh", "six") != "no tree" {
		t.Errorf("after use: %s, %t", name, chosen)
	}
}

// What a conversation asked for is told to be stale where the environment below it came to be another one, instead of
// runs that have the two halves; asking again makes it fit if that is possible, and giving it up always does.
func TestStaleConversation(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six", "needs-six", "needs-old-six", "sixx", "flex"}
	for _, tt := range []struct {
		name, below, asked, meanwhile, broken string
		again                                 string // what fits what is there by then; "" for nothing
		sees                                  map[string]string
	}{
		{
			"another version below", "", "needs-six", "six==1.16.0", "six 1.17.0 is 1.16.0 there", "sixx",
			map[string]string{"six": "1.16.0", "needs_six": "1.0", "sixx": "1.0"},
		},
		{"a requirement that is broken below", "six==1.16.0", "needs-old-six", "six==1.17.0", "needs-old-six 1.0 requires six<1.17, and 1.17.0 is there", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, other := w.begin(), w.begin()
			name := strings.ReplaceAll(tt.name, " ", "-")
			request := func(requirement string) error {
				p, err := c.Plan(t.Context(), envs.Want{Environment: name, Requirements: []string{requirement}, Conversation: true}, nil)
				if err == nil {
					_, err = c.Apply(t.Context(), p, nil)
				}
				return err
			}
			if tt.below != "" {
				if _, _, err := install(other, name, tt.below); err != nil {
					t.Fatal(err)
				}
			}
			if err := request(tt.asked); err != nil {
				t.Fatal(err)
			}
			if _, _, err := install(other, name, tt.meanwhile); err != nil {
				t.Fatal(err)
			}
			var stale *envs.StaleError
			if _, err := c.Mount(t.Context(), name); !errors.As(err, &stale) || !slices.Contains(stale.Broken, tt.broken) {
				t.Errorf("a run: %v, want %q", err, tt.broken)
			}
			if tt.again != "" {
				if err := request(tt.again); err != nil {
					t.Errorf("asked again: %v", err)
				}
				for module, want := range tt.sees {
					if got := w.sees(c, name, module); got != want {
						t.Errorf("after that runs see %s %s, want %s", module, got, want)
					}
				}
				return
			}
			if dropped, err := c.Use(t.Context(), name); err != nil || !dropped {
				t.Errorf("given up: %t, %v", dropped, err)
			}
			if got := w.sees(c, name, "six"); got != "1.17.0" {
				t.Errorf("after that runs see six %s", got)
			}
		})
	}
}

// Choosing the environment that a conversation has keeps what it has on top, and what is asked for anew in other words
// is not lost among what the environment was asked for.
func TestConversationAsksAnew(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six", "needs-six"}
	c := w.begin()
	if _, _, err := install(c, "default", "six>=1.15", "six<1.17", "six!=1.15.0"); err != nil {
		t.Fatal(err)
	}
	p, err := c.Plan(t.Context(), envs.Want{Environment: "default", Requirements: []string{"six>=1.16", "needs-six"}, Conversation: true}, nil)
	if err == nil {
		_, err = c.Apply(t.Context(), p, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if dropped, err := c.Use(t.Context(), "default"); dropped || err != nil {
		t.Errorf("using what is used: dropped %t, %v", dropped, err)
	}
	e, err := c.Effective("default")
	if want := []string{"six>=1.15", "six<1.17", "six!=1.15.0", "needs-six"}; err != nil || !slices.Contains(e.Roots, "six>=1.16") || !slices.Contains(e.Roots, want[3]) || !slices.Equal(e.Roots[:3], want[:3]) {
		t.Errorf("was asked for: %q, %v", e.Roots, err)
	}
	if a, b := w.sees(c, "default", "six"), w.sees(c, "default", "needs_six"); a != "1.16.0" || b != "1.0" {
		t.Errorf("runs see %s, %s", a, b)
	}
}
