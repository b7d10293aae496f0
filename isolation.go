package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"airlock/sandbox"
)

// chooser gives what sandbox.backend = "auto" comes to on this host. It is found out when first asked for, once.
func chooser() func() sandbox.Choice {
	return sync.OnceValue(func() sandbox.Choice { return sandbox.Choose(context.Background()) })
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
		return describeChoice(choose())
	}
	return fmt.Sprintf("Runs are isolated by the backend %s, as sandbox.backend says.", s.Sandbox.Backend)
}

func describeChoice(c sandbox.Choice) string {
	causes := ""
	for _, r := range c.Refused {
		causes += fmt.Sprintf(" %s does not work on this host: %s.", r.Name, clip(r.Cause(), 160))
	}
	if c.Name == "" {
		return "No run is possible: nothing isolates one here." + causes + " Tell the user, to whom airlock doctor says what mends it."
	}
	return fmt.Sprintf("Runs are isolated by the backend %s: %s.%s", c.Name, clip(c.Why, 160), causes)
}

// clip cuts a text to about n bytes.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
