package main

import (
	"context"
	"strings"

	"airlock/sandbox"
)

// examined is the workspace that doctor judges runs in, and the settings that hold in it.
type examined struct {
	opened
	settings settings // the user's where there is no workspace, or it is refused
	none     error    // why the working directory, which nobody named, is no workspace
	err      error    // why every run in it is refused
}

// examine opens the workspace as a run does. That the working directory is none is no fault of the host's: a server has that of its
// client.
func (s setup) examine() examined {
	w := examined{settings: s.user}
	dir, err := s.here()
	if err == nil {
		_, err = s.rules.open(dir)
	}
	if err != nil && s.workspace == "" {
		w.none = err
		return w
	}
	if w.opened, w.err = s.openHere(); w.err == nil {
		w.settings = w.opened.settings
	}
	return w
}

// enter finds out whether something refuses every run in the workspace, by doing what a run does before it begins. Where there is no
// workspace, that is what every one would be refused for.
func (d *diagnosis) enter(ctx context.Context, p places, w examined, environ []string) {
	const name, promise = "workspace", "runs are possible in it"
	d.Workspace = w.dir
	switch {
	case w.err != nil:
		d.refuse(name, promise, w.err)
		return
	case w.none != nil:
		d.NoWorkspace = strings.TrimPrefix(w.none.Error(), name+": ")
		if _, err := w.settings.read(); err != nil {
			d.refuse("sandbox.read", "runs read what it names", err)
		}
		return
	case !d.Possible:
		return
	}
	if uid, _, err := runAs(w.dir); err == nil && uid == 0 && d.RootRefused {
		d.refuse(name, promise, &fault{
			Where: name, Key: tomlText(w.dir), Hint: "run airlock as another user, or give it a cgroup",
			Msg: "is root's own, nothing here holds limits.processes, and root of the host is not bound by the other means",
		})
		return
	}
	backend := d.Backend // which was tried just now
	w.auto = func() (sandbox.Backend, error) { return sandbox.Open(backend) }
	runner, err := openRunner(ctx, p, w.opened, environ)
	if err == nil {
		err = runner.Close()
	}
	if err != nil {
		d.refuse(name, promise, err)
		return
	}
	d.Checks = append(d.Checks, check{Name: name, Promise: promise, OK: true, Detail: tomlText(w.dir) + " can be opened; project policy: " + w.projectState()})
}
