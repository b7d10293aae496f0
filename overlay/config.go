package overlay

import (
	"fmt"
	"slices"
	"strings"

	"airlock/internal/units"
)

// Config is the [workspace] section of the configuration. The zero value is not usable; start from
// [Defaults].
type Config struct {
	// Mode is "overlay" (runs write to a layer that lands or is discarded), "direct" (no transaction
	// at all: see [Workspace.Hold]) or "readonly" (there are views in place of
	// transactions).
	Mode string `toml:"mode"`

	// LandOn says which runs land: "success" (exit status 0), "exit" (every normal exit) or "review"
	// (as with "success", but a run's changes wait until a person lands them: see [Txn.Park]). The
	// caller decides by it; this package does not look at it.
	LandOn string `toml:"land_on"`

	// OnConflict says what a conflict means for the rest of the run: "beside" (the rest lands, the
	// run's version is put beside the host's) or "discard" (nothing of the run lands).
	OnConflict string `toml:"on_conflict"`

	// Durable makes a landing survive loss of power, whole or not at all, at the price of waiting for the
	// disk.
	Durable bool `toml:"durable"`

	// Protect holds globs whose changes never land, beside the built-in list. They match without
	// regard to case and at any depth; a leading slash ties one to the root of the workspace.
	Protect []string `toml:"protect"`

	// Ignore holds globs that runs may write and that are neither landed nor reported.
	Ignore []string `toml:"ignore"`

	// Undo bounds the replaced content that is kept for undo, in bytes; the oldest goes first, but what a
	// run alone replaced beyond it is not kept. With 0 nothing can be taken back.
	Undo units.Size `toml:"undo"`

	// Order is "arrival" (runs of one conversation follow each other) or "parallel" (they overlap).
	// The caller decides by it; this package takes any number of transactions at once.
	Order string `toml:"order"`
}

// Defaults returns the configuration that holds where nothing is set.
func Defaults() Config {
	return Config{
		Mode:       "overlay",
		LandOn:     "success",
		OnConflict: "beside",
		Ignore:     []string{"**/__pycache__/**"},
		Undo:       1 << 30,
		Order:      "arrival",
	}
}

// Validate returns the first value that is not allowed, named by its key.
func (c Config) Validate() error {
	for _, v := range []struct {
		key, value string
		allowed    []string
	}{
		{"mode", c.Mode, []string{"overlay", "direct", "readonly"}},
		{"land_on", c.LandOn, []string{"success", "exit", "review"}},
		{"on_conflict", c.OnConflict, []string{"beside", "discard"}},
		{"order", c.Order, []string{"arrival", "parallel"}},
	} {
		if !slices.Contains(v.allowed, v.value) {
			return fmt.Errorf("workspace.%s: %q is not one of %s", v.key, v.value, strings.Join(v.allowed, ", "))
		}
	}
	if c.Undo < 0 {
		return fmt.Errorf("workspace.undo: %d is negative", int64(c.Undo))
	}
	for _, l := range []struct {
		key   string
		globs []string
	}{{"protect", c.Protect}, {"ignore", c.Ignore}} {
		for i, g := range l.globs {
			if _, err := compileGlob(g); err != nil {
				return fmt.Errorf("workspace.%s[%d]: %w", l.key, i, err)
			}
		}
	}
	return nil
}
