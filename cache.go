package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"airlock/internal/runcache"
	"airlock/internal/units"
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
	{"UV_LINK_MODE", "copy"}, // the cache is another filesystem than the workspace
	{"XDG_CACHE_HOME", "CACHE"},
	{"npm_config_cache", "CACHE/npm"},
}

// cache opens what the runs of the workspace have as ~/.cache, and sets the variables that lead to it; nil
// where it is not wanted. The error says why it can't be had.
func (o opened) cache(p places, view *tools.View, account sandbox.Account) (*runcache.Cache, error) {
	if o.settings.Sandbox.Cache == "" || o.settings.Unconfined() {
		return nil, nil
	}
	limit, err := units.ParseSize(o.settings.Sandbox.Cache)
	if err != nil {
		return nil, err // it was validated
	}
	at := filepath.Join(account.Home, ".cache")
	// A cache that something is to be mounted into would need mount points, which a run could take away.
	taken := func(target string) bool { return target == at || strings.HasPrefix(target, at+"/") }
	if taken(o.dir) || taken(o.alias) || slices.ContainsFunc(view.Mounts, func(m sandbox.Mount) bool { return taken(m.Target) }) {
		return nil, errors.New("the workspace, or something of sandbox.read or PATH, lies in " + at)
	}
	c, err := runcache.Open(realPath(p.state), o.dir, int64(limit), account.UID, account.GID)
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
