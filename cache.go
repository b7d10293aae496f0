package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"airlock/internal/units"
	"airlock/overlay"
	"airlock/sandbox"
	"airlock/tools"
)

// cacheVariables lead the programs whose caches do not lie in ~/.cache by themselves to it. What the user sets
// goes before them.
var cacheVariables = []struct{ name, value string }{
	{"BUN_INSTALL_CACHE_DIR", "CACHE/bun"},
	{"CARGO_HOME", "CACHE/cargo"},
	{"GOMODCACHE", "CACHE/go-mod"},
	{"GRADLE_USER_HOME", "CACHE/gradle"},
	{"MAVEN_ARGS", "-Dmaven.repo.local=CACHE/maven"},
	{"NUGET_PACKAGES", "CACHE/nuget"},
	{"UV_LINK_MODE", "copy"}, // the cache is another mount than the workspace
	{"XDG_CACHE_HOME", "CACHE"},
	{"npm_config_cache", "CACHE/npm"},
}

// cache opens what the runs of the workspace have as ~/.cache, and sets the variables that lead to it; nil
// where it is not wanted. The error says why it can't be had.
func (o opened) cache(p places, view *tools.View, account sandbox.Account) (*overlay.Cache, error) {
	if o.settings.Sandbox.Cache == "" || o.settings.Unconfined() {
		return nil, nil
	}
	at := filepath.Join(account.Home, ".cache")
	// A cache that something is to be mounted into would need mount points, which a run could take away.
	taken := func(target string) bool { return target == at || strings.HasPrefix(target, at+"/") }
	if taken(o.dir) || taken(o.alias) || slices.ContainsFunc(view.Mounts, func(m sandbox.Mount) bool { return taken(m.Target) }) {
		return nil, errors.New("the workspace, or something of sandbox.read or PATH, lies in " + at)
	}
	c, err := o.openCache(p, account.UID, account.GID)
	if err != nil {
		return nil, err
	}
	view.Env = slices.Clone(view.Env)
	for _, v := range cacheVariables {
		if lookup(view.Env, v.name) == "" {
			view.Env = append(view.Env, v.name+"="+strings.ReplaceAll(v.value, "CACHE", at))
		}
	}
	return c, nil
}

func (o opened) openCache(p places, uid, gid int) (*overlay.Cache, error) {
	limit, err := units.ParseSize(o.settings.Sandbox.Cache)
	if err != nil {
		return nil, err // it was validated
	}
	return overlay.OpenCache(realPath(p.state), o.dir, int64(limit), uid, gid)
}

// endWaitingCache does with what a run left for the cache what was done with its changes, which have waited for review.
func (o opened) endWaitingCache(ctx context.Context, p places, run string, end func(*overlay.Cache, context.Context, string) error) error {
	if o.settings.Sandbox.Cache == "" || o.settings.Unconfined() {
		return nil
	}
	uid, gid, err := runAs(o.dir)
	if err != nil {
		return err
	}
	c, err := o.openCache(p, uid, gid)
	if err != nil {
		return err
	}
	return errors.Join(end(c, ctx, run), c.Close())
}

// keepWaitingCache throws away what the cache has of runs that do not wait for review any more.
func keepWaitingCache(ctx context.Context, c *overlay.Cache, w *overlay.Workspace) error {
	return c.KeepWaiting(ctx, func() (runs []string, err error) {
		waiting, err := w.Waiting(ctx)
		for _, one := range waiting {
			runs = append(runs, one.Run)
		}
		return runs, err
	})
}
