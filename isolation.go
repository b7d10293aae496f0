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

// backendAhead is a backend that is built in a goroutine of its own, with the init of its first run started.
type backendAhead struct {
	of   backendKey
	wait func() (sandbox.Backend, error)
}

// backendKey is all that a backend and its first init depend on.
type backendKey struct {
	name     string // as sandbox.backend says
	uid, gid int
}

func (s settings) backendKey(uid, gid int) backendKey { return backendKey{s.Sandbox.Backend, uid, gid} }

// backendAhead begins to build the backend that the settings name, as backend does.
func (s settings) backendAhead(auto func() (sandbox.Backend, error), uid, gid int) *backendAhead {
	wait := sync.OnceValues(func() (sandbox.Backend, error) {
		b, err := s.backend(auto)
		if b, ok := b.(starterAhead); ok && err == nil {
			b.StartAhead(uid, gid)
		}
		return b, err
	})
	go wait() //nolint:errcheck // whoever waits has the error
	return &backendAhead{s.backendKey(uid, gid), wait}
}

// close closes a backend that nobody has taken. A nil backendAhead has none.
func (a *backendAhead) close() error {
	if a == nil {
		return nil
	}
	b, err := a.wait()
	if err != nil {
		return nil // there is none
	}
	return b.Close()
}

// backend builds the backend that the settings name; auto builds the one that "auto" comes to.
func (s settings) backend(auto func() (sandbox.Backend, error)) (sandbox.Backend, error) {
	switch {
	case s.Unconfined():
		return sandbox.Direct{}, nil
	case s.Sandbox.Backend == "auto":
		return auto()
	}
	return sandbox.Open(s.Sandbox.Backend)
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
