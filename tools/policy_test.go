package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func policies() []Policy {
	var ps []Policy
	for _, mode := range []Policy{{}, {Direct: true}, {Through: true}, {Through: true, Hides: true}, {ReadOnly: true}, {Hides: true}, {ReadOnly: true, Hides: true}} {
		for _, landOn := range []string{"success", "exit", "review"} {
			for _, network := range []string{"deny", "allowlist", "allow"} {
				for _, order := range []string{"arrival", "parallel"} {
					p := Policy{Direct: mode.Direct, Through: mode.Through, ReadOnly: mode.ReadOnly, Hides: mode.Hides, LandOn: landOn, Network: network, Order: order, Limits: DefaultLimits()}
					for i := range 30 {
						p.Allow = append(p.Allow, fmt.Sprintf("*.some-host-%d.example", i))
					}
					ps = append(ps, p)
				}
			}
		}
	}
	return ps
}

// Clients cut texts that are longer than 2 KB, and the end of ours matters.
func TestTextsAreShort(t *testing.T) {
	for _, p := range policies() {
		if !p.Direct {
			p.Isolation = strings.Repeat("x", MaxIsolation)
		}
		if n := len(p.instructions()); n >= 2048 {
			t.Errorf("the instructions have %d bytes with %+v", n, p)
		}
		p.Packages, p.Cache = true, true
		if n := len(p.instructions()); n >= 2048 {
			t.Errorf("the instructions have %d bytes with packages, a cache and %+v", n, p)
		}
		p.Packages, p.Cache = false, false
		p.Notes = []string{strings.Repeat("A long note. ", 200)}
		for _, tool := range offered(Config{}, p) {
			if n := len(tool.Description); n >= 2048 {
				t.Errorf("the description of %s has %d bytes with %+v", tool.Name, n, p)
			}
		}
		p.Notes = nil
		for _, tool := range offered(Config{}, p) {
			if strings.HasSuffix(tool.Description, "…") {
				t.Errorf("the description of %s is cut with %+v", tool.Name, p)
			}
		}
	}
}

func TestTextsFollowThePolicy(t *testing.T) {
	for _, p := range policies() {
		d := p.Describe()
		for text, want := range map[string]bool{
			"NOT sandboxed":                     p.Direct,
			"exits with 0 land":                 !p.Direct && !p.Through && !p.ReadOnly && p.LandOn == "success",
			"whatever exit status":              !p.Direct && !p.Through && !p.ReadOnly && p.LandOn == "exit",
			"until the user has reviewed":       !p.Direct && !p.Through && !p.ReadOnly && p.LandOn == "review",
			"is there AT ONCE":                  p.Through,
			"written to the workspace, /tmp":    !p.Through,
			"is READ-ONLY":                      p.ReadOnly,
			"paths of the workspace are hidden": p.Hides,
			"no network":                        p.Network == "deny",
			"*.some-host-0.example":             p.Network == "allowlist",
			"and 20 more":                       p.Network == "allowlist",
			"The network is reachable.":         p.Network == "allow" && p.Direct,
			"Every public address":              p.Network == "allow" && !p.Direct,
			"2m a run":                          true,
			"at most 1h":                        true,
		} {
			if strings.Contains(d, text) != want {
				t.Errorf("%q in %q: want %v", text, d, want)
			}
		}
		if strings.Contains(p.instructions(), "workspace is read-only") != p.ReadOnly {
			t.Errorf("instructions: %s", p.instructions())
		}
		if says := strings.Contains(string(runShell(p).RawInputSchema), "discard its changes"); says != (!p.Direct && !p.Through) {
			t.Errorf("timeout_seconds speaks of changes that are discarded: %v, with %+v", says, p)
		}
		a := annotations(p)
		if *a.ReadOnlyHint != (p.ReadOnly && p.Network == "deny") || *a.DestructiveHint == p.ReadOnly {
			t.Errorf("annotations %+v with %+v", a, p)
		}
		if lands, want := strings.Contains(p.goesOn(), "and lands"), !p.Direct && !p.Through && !p.ReadOnly && p.LandOn != "review"; lands != want {
			t.Errorf("%+v: %s", p, p.goesOn())
		}
		p.OnConflict = "discard"
		if says := strings.Contains(p.instructions(), "nothing of the run lands then"); says != (!p.Direct && !p.Through && !p.ReadOnly) {
			t.Errorf("%+v: what becomes of a conflict: %v", p, says)
		}
		if says := strings.Contains(p.instructions(), "wait until the user lands them"); says != (!p.Direct && !p.Through && !p.ReadOnly && p.LandOn == "review") {
			t.Errorf("the instructions speak of a review: %v, with %+v", says, p)
		}
		if open := *annotations(p).OpenWorldHint; open != (p.Direct || p.Network != "deny") {
			t.Errorf("openWorldHint is %v with %+v", open, p)
		}
	}
}

func TestSchemaFollowsTheLimits(t *testing.T) {
	p := policies()[0]
	p.Limits.MaxTimeout = p.Limits.Timeout
	var schema struct {
		Properties map[string]map[string]any
		Required   []string
		Additional *bool `json:"additionalProperties"`
	}
	if err := json.Unmarshal(runShell(p).RawInputSchema, &schema); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "integer", "minimum": 1.0, "maximum": 120.0,
		"description": "End the run after this many seconds, and discard its changes. Left out: 2m.",
	}
	if d := cmp.Diff(want, schema.Properties["timeout_seconds"]); d != "" {
		t.Errorf("timeout_seconds (-want +got):\n%s", d)
	}
	if len(schema.Required) > 0 { // a command, or a run that goes on
		t.Errorf("required: %q", schema.Required)
	}
	if schema.Additional == nil || *schema.Additional {
		t.Error("the schema takes arguments that it does not name")
	}
}

func TestDisabledTools(t *testing.T) {
	opts := testOptions(newFakeRunner())
	opts.Tools.Disable = []string{"run_shell"}
	c := connect(t, New(opts))
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if line := c.next(); strings.Contains(line, "run_shell") || !strings.Contains(line, "run_python") {
		t.Errorf("tools are %s", line)
	}
	c.send(shell("2", "true"))
	if r := decode(t, c.next()); r.Error == nil || r.Error.Code != -32602 {
		t.Errorf("a tool that is not offered answers %+v", r)
	}
}
