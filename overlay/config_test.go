package overlay

import (
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	if err := Defaults().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
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
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c = Defaults()
	c.Mode, c.LandOn, c.OnConflict, c.Order, c.Protect, c.Ignore = "direct", "exit", "discard", "parallel", []string{"x"}, nil
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
