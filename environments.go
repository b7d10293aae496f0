package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"airlock/envs"
	"airlock/proxy"
	"airlock/sandbox"
	"airlock/tools"
)

// environmentsDir is where environments are kept. Links on the way are followed: what is mounted must be at
// its real path.
func (p places) environmentsDir() (string, error) {
	if err := p.makeState(); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(p.state)
	return filepath.Join(real, "envs"), err
}

// packageOptions is what the package tools of the workspace need.
func (o opened) packageOptions(p places, system *sandbox.System, view tools.View, uid int) (tools.PackageOptions, error) {
	if o.settings.Unconfined() {
		return tools.PackageOptions{Off: `there are no environments with sandbox.backend = "direct": what a package does when it is installed is nothing that a sandbox keeps from the host`}, nil
	}
	if uid != os.Geteuid() {
		return tools.PackageOptions{Off: fmt.Sprintf("there are no environments where root serves a workspace of somebody else, who does not get to root's state; run airlock as its owner, uid %d", uid)}, nil
	}
	dir, err := p.environmentsDir()
	if err != nil {
		return tools.PackageOptions{}, err
	}
	store, err := envs.OpenStore(dir)
	if err != nil {
		return tools.PackageOptions{}, fmt.Errorf("the environments can't be opened: %w", err)
	}
	stubs, err := store.Stubs(installersOn(system.Path))
	if err != nil {
		return tools.PackageOptions{}, fmt.Errorf("the environments can't be opened: %w", err)
	}
	find := view.Python
	find.Workspace = "" // nothing in it decides what is installed
	find.Visible = system.Visible
	network := tools.InstallNetwork(o.settings.Network, o.settings.Packages.Destinations())
	return tools.PackageOptions{
		System:  system.Mounts,
		Stubs:   stubs,
		Gateway: func() (*proxy.Gateway, error) { return proxy.NewGateway(network, nil) },
		Begin: func(ctx context.Context, in envs.Installer) (*envs.Conversation, error) {
			return envs.Begin(ctx, envs.Options{
				Store: store, Installer: in, Find: find, Packages: o.settings.Packages, Python: o.settings.Python,
				MostBytes: int64(o.settings.Limits.Disk),
			})
		},
	}, nil
}

// installersOn are the installers that runs find.
func installersOn(path []string) []string {
	return slices.DeleteFunc(slices.Clone(envs.StubNames), func(name string) bool {
		return !slices.ContainsFunc(path, func(dir string) bool {
			_, err := exec.LookPath(filepath.Join(dir, name))
			return err == nil
		})
	})
}
