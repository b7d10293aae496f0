package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"airlock/sandbox"
	"airlock/tools"
)

func TestIsolation(t *testing.T) {
	refused := func(name, hint string) sandbox.Refused {
		return sandbox.Refused{Name: name, Err: &sandbox.SetupError{Op: "create namespaces", Err: errors.New("no"), Hint: hint}}
	}
	native := sandbox.Choice{Name: "native", Why: "it works"}
	bwrap := sandbox.Choice{Name: "bwrap", Why: "it works", Refused: []sandbox.Refused{refused("native", "user.x is 0; set it\nto 1")}}
	none := sandbox.Choice{Refused: []sandbox.Refused{refused("native", strings.Repeat("cause ", 99)), refused("bwrap", strings.Repeat("other ", 99))}}
	const impossible = "No run is possible: nothing isolates one on this host. Tell the user, to whom airlock doctor says what mends it. native does not work here: cause "
	for _, tt := range []struct {
		backend string
		choice  sandbox.Choice
		want    string // the beginning
	}{
		{"auto", native, "Runs are isolated by the backend native: it works."},
		{"auto", bwrap, "Runs are isolated by the backend bwrap: it works. native does not work here: user.x is 0; set it."},
		{"auto", none, impossible},
		{"native", none, "Runs are isolated by the backend native, as sandbox.backend says."},
		{"bwrap", native, "Runs are isolated by the backend bwrap, as sandbox.backend says."},
		{"direct", none, ""},
	} {
		var s settings
		s.Sandbox.Backend = tt.backend
		got := s.isolation(func() sandbox.Choice { return tt.choice })
		if !strings.HasPrefix(got, tt.want) || got != tt.want && tt.want != impossible || len(got) > tools.MaxIsolation {
			t.Errorf("%s, %+v: %q (%d bytes), want %q", tt.backend, tt.choice, got, len(got), tt.want)
		}
	}
}

// Nothing runs where "auto" finds nothing, and the error holds every cause and every way out.
func TestBackendOfNoChoice(t *testing.T) {
	choice := sandbox.Choice{Refused: []sandbox.Refused{
		{Name: "native", Err: &sandbox.SetupError{Op: "a", Err: errors.New("b"), Hint: "first way out"}},
		{Name: "bwrap", Err: &sandbox.SetupError{Op: "c", Err: errors.New("d"), Hint: "second way out"}},
	}}
	var s settings
	s.Sandbox.Backend = "auto"
	backend, err := s.backend((&chooser{
		try:  func(context.Context, time.Duration) (sandbox.Choice, sandbox.Backend) { return choice, nil },
		host: func() string { return "" },
	}).open)
	if backend != nil || err == nil {
		t.Fatalf("got %v, %v", backend, err)
	}
	const want = "sandbox.backend = \"native\": sandbox: a: b; sandbox.backend = \"bwrap\": sandbox: c: d; hint: first way out; hint: second way out"
	if got := forModel(err).Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
