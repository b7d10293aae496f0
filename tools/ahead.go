package tools

import (
	"context"
	"slices"

	"airlock/internal/lull"
	"airlock/overlay"
	"airlock/sandbox"
)

// Prepare has the sandbox of the next run begun ahead, and from then on that of the one after each, if the backend can
// do that. It is for who does more than one run, and returns at once.
func (w *WorkspaceRunner) Prepare() {
	b, ok := w.backend.(preparer)
	if !ok || w.layers == nil {
		return
	}
	w.ahead.Store(true)
	w.layers.RemoveBeside()
	if w.cache != nil {
		w.cache.RemoveBeside()
	}
	w.preparing.Go(func() {
		env, _, err := w.surround(context.Background(), Request{Tool: "run_shell"})
		if err != nil {
			return
		}
		defer env.release()
		// Where a run's layers are is known when there is a run. They are not mounted before.
		unknown := []overlay.Layer{{Lower: w.view.Workspace, Upper: "/", Work: "/"}}
		spec, _, err := w.compose("", Request{Tool: "run_shell"}, unknown, env, nil)
		if err != nil {
			return
		}
		if way, _ := w.egress(); way != nil {
			way.attachTo(&spec)
		}
		b.Prepare(spec)
	})
}

// preparer is a backend that can begin a sandbox before there is a run.
type preparer interface{ Prepare(like sandbox.Spec) }

// prepareAfter has the sandbox of the run after this one begun, and garbage collected before that one comes. The sandbox is for a
// command, most likely, in the workspace's own environment: what a call adds to that is its own.
func (w *WorkspaceRunner) prepareAfter(spec sandbox.Spec, env surroundings, way *egress) {
	if !w.ahead.Load() {
		return
	}
	spec.Argv, spec.Env = []string{w.view.Shell, "-c", ""}, env.onPath(w.view.Env)
	if way != nil {
		way.attachTo(&spec)
	}
	isScript := func(m sandbox.Mount) bool { return m.Target == scriptFile }
	if slices.ContainsFunc(spec.Mounts, isScript) { // of a copy: the list is the run's own
		spec.Mounts = slices.DeleteFunc(slices.Clone(spec.Mounts), isScript)
	}
	w.backend.(preparer).Prepare(spec)
	lull.Collect()
}
