package main

import (
	"errors"
	"fmt"
	"strings"

	"airlock/envs"
	"airlock/overlay"
	"airlock/proxy"
	"airlock/sandbox"
	"airlock/tools"
)

// Config is the whole configuration: one section for each package, which documents and validates it.
type Config struct {
	Workspace overlay.Config `toml:"workspace"`
	Sandbox   sandbox.Config `toml:"sandbox"`
	Limits    tools.Limits   `toml:"limits"`
	Network   proxy.Config   `toml:"network"`
	Packages  envs.Packages  `toml:"packages"`
	Tools     tools.Config   `toml:"tools"`
	Python    envs.Python    `toml:"python"`
}

// Defaults returns the configuration that holds where nothing is said. Each call returns values of
// their own, that share nothing.
func Defaults() Config {
	return Config{
		Workspace: overlay.Defaults(),
		Sandbox:   sandbox.Defaults(),
		Limits:    tools.DefaultLimits(),
		Network:   proxy.Defaults(),
		Packages:  envs.DefaultPackages(),
		Tools:     tools.Defaults(),
		Python:    envs.DefaultPython(),
	}
}

// Validate reports what is wrong with the configuration, each fault as "section.key: …", joined: what
// the sections find, or else what only shows where two of them meet.
func (c Config) Validate() error {
	if err := errors.Join(
		c.Workspace.Validate(), c.Sandbox.Validate(), c.Limits.Validate(), c.Network.Validate(),
		c.Packages.Validate(), c.Tools.Validate(), c.Python.Validate(),
	); err != nil {
		return err
	}
	return errors.Join(c.checkHide(), c.checkDirect())
}

// checkHide reads sandbox.hide as those do who carry it out.
func (c Config) checkHide() error {
	if _, err := overlay.NewHidden(c.Sandbox.Hide); err != nil {
		return fmt.Errorf("sandbox.hide%w", err)
	}
	if len(c.Sandbox.Hide) > 0 && c.Unconfined() {
		return errors.New(`sandbox.hide: nothing hides a path from a run without a sandbox; leave it out, or take another sandbox.backend than "direct"`)
	}
	return nil
}

// Unconfined reports whether runs are not isolated at all.
func (c Config) Unconfined() bool { return c.Sandbox.Backend == "direct" }

// checkDirect makes whoever switches the sandbox off write down what that means: a workspace without
// transactions and an open network. Otherwise those two keys would promise what is not kept.
func (c Config) checkDirect() error {
	if !c.Unconfined() {
		return c.checkThrough()
	}
	var missing []string
	if c.Workspace.Mode != "direct" {
		missing = append(missing, `workspace.mode = "direct"`)
	}
	if c.Network.Mode != "allow" {
		missing = append(missing, `network.mode = "allow"`)
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("sandbox.backend: \"direct\" isolates nothing; write %s beside it to say that you know, or take another backend",
		strings.Join(missing, " and "))
}

// checkThrough refuses what a workspace that runs write to without a transaction can't keep.
func (c Config) checkThrough() error {
	switch {
	case c.Workspace.Mode != "direct":
	case c.Workspace.LandOn == "review":
		return errors.New(`workspace.mode: "direct" has nothing that could wait for a review; take "overlay", or another workspace.land_on than "review"`)
	case c.Workspace.OnConflict == "discard":
		return errors.New(`workspace.mode: "direct" has no conflict check; take "overlay", or workspace.on_conflict = "beside"`)
	case c.Workspace.Durable:
		return errors.New(`workspace.mode: "direct" has no landing that could be durable; take "overlay", or workspace.durable = false`)
	case c.Limits.Enforce == "strict":
		return errors.New(`workspace.mode: nothing bounds what a run writes with "direct" (limits.disk), and limits.enforce is "strict"; take "overlay", or limits.enforce = "best"`)
	}
	return nil
}
