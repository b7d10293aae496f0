package main

import (
	"fmt"
	"strings"
	"sync"

	"airlock/sandbox"
	"airlock/tools"
)

// starterAhead is a backend that can start something of the first run before anything is known of that but its identity.
type starterAhead interface{ StartAhead(uid, gid int) }

// backendAhead builds the backend that the settings name in a goroutine of its own, and starts the init of its first run;
// wait returns the backend.
func (s settings) backendAhead(choose func() sandbox.Choice, uid, gid int) (wait func() (sandbox.Backend, error)) {
	wait = sync.OnceValues(func() (sandbox.Backend, error) {
		b, err := s.backend(choose)
		if b, ok := b.(starterAhead); ok && err == nil {
			b.StartAhead(uid, gid)
		}
		return b, err
	})
	go wait() //nolint:errcheck // whoever waits has the error
	return wait
}

// backend builds the backend that the settings name.
func (s settings) backend(choose func() sandbox.Choice) (sandbox.Backend, error) {
	if s.Unconfined() {
		return sandbox.Direct{}, nil
	}
	name := s.Sandbox.Backend
	if name == "auto" {
		choice := choose()
		if err := choice.Err(); err != nil {
			return nil, err
		}
		name = choice.Name
	}
	return sandbox.Open(name)
}

// isolation says in a sentence or two, for a model, what isolates runs here and why that; "" if nothing does because
// the settings say so.
func (s settings) isolation(choose func() sandbox.Choice) string {
	switch s.Sandbox.Backend {
	case "direct":
		return ""
	case "auto":
		return clip(describeChoice(choose()), tools.MaxIsolation)
	}
	return fmt.Sprintf("Runs are isolated by the backend %s, as sandbox.backend says.", s.Sandbox.Backend)
}

func describeChoice(c sandbox.Choice) string {
	text := fmt.Sprintf("Runs are isolated by the backend %s: %s.", c.Name, clip(c.Why, 160))
	if c.Name == "" {
		text = "No run is possible: nothing isolates one on this host. Tell the user, to whom airlock doctor says what mends it."
	}
	for _, r := range c.Refused {
		text += fmt.Sprintf(" %s does not work here: %s.", r.Name, clip(r.Cause(), 160))
	}
	return text
}

// clip cuts a text to n bytes.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const cut = "…"
	return strings.ToValidUTF8(text[:n-len(cut)], "") + cut
}
