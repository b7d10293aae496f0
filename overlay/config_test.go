package overlay

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfig(t *testing.T) {
	if err := Defaults().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	if keys := Defaults().Unsupported(); len(keys) > 0 {
		t.Errorf("the defaults are not supported: %v", keys)
	}
	for want, change := range map[string]func(*Config){
		`workspace.mode: "x" is not one of overlay, direct, readonly`: func(c *Config) { c.Mode = "x" },
		`workspace.land_on: "" is not one of success, exit, review`:   func(c *Config) { c.LandOn = "" },
		`workspace.on_conflict: "y" is not one of beside, discard`:    func(c *Config) { c.OnConflict = "y" },
		`workspace.order: "z" is not one of arrival, parallel`:        func(c *Config) { c.Order = "z" },
		`workspace.undo: -1 is negative`:                              func(c *Config) { c.Undo = -1 },
		`workspace.protect[1]: "a[" is not a glob`:                    func(c *Config) { c.Protect = []string{"a", "a["} },
		`workspace.ignore[0]: "!x" is not a glob`:                     func(c *Config) { c.Ignore = []string{"!x"} },
	} {
		c := Defaults()
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	c := Defaults()
	c.Mode, c.LandOn, c.Durable, c.Undo = "readonly", "review", true, 0
	var want []string
	if diff := cmp.Diff(want, c.Unsupported()); diff != "" {
		t.Errorf("unsupported (-want +got):\n%s", diff)
	}
	c = Defaults()
	c.Mode, c.LandOn, c.OnConflict, c.Order, c.Protect, c.Ignore = "direct", "exit", "discard", "parallel", []string{"x"}, nil
	if err := c.Validate(); err != nil || len(c.Unsupported()) > 0 {
		t.Errorf("%v, %v", err, c.Unsupported())
	}
}
