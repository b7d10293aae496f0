package overlay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// waits reports whether a run waits for review.
func (w *Workspace) waits(run string) (bool, error) {
	runs, err := waitingRuns(w.scratch.base)
	return slices.Contains(runs, run), err
}

// diffWaiting writes what would land of a run that waits, against the workspace as it is.
func (w *Workspace) diffWaiting(ctx context.Context, run string, out io.Writer) error {
	t, err := w.resume(run)
	if err != nil {
		return err
	}
	return errors.Join(t.diff(ctx, out), t.end())
}

func (t *Txn) diff(ctx context.Context, out io.Writer) error {
	c, err := t.judged(ctx)
	if err != nil {
		return err
	}
	d := differ{out: out}
	p := c.plan(false)
	steps := slices.Clone(p.steps)
	slices.SortStableFunc(steps, func(a, b step) int { return strings.Compare(a.path, b.path) })
	for _, s := range steps {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := t.show(s, d); err != nil {
			return err
		}
	}
	for _, held := range p.report.Withheld {
		if err := d.say("", held.Path, " is withheld: "+held.Why); err != nil {
			return err
		}
	}
	for _, conflict := range p.report.Conflicts {
		if err := d.say("", conflict.Path, " changed meanwhile and stays"); err != nil {
			return err
		}
	}
	return nil
}

// show writes what one step would do.
func (t *Txn) show(s step, d differ) error {
	switch s.kind {
	case takeAway:
		return d.file(s.path, versionAt(t.w.root, s.path), version{})
	case removeDir:
		if len(s.deleted) > 0 {
			return d.say("", s.path, ": directory removed")
		}
		return nil
	case applyMode:
		return d.say("", reportPath(s.path), fmt.Sprintf(": directory, mode %04o to %04o", s.host.mode, s.run.mode))
	}
	if s.conflict {
		if err := d.say("", s.path, " changed meanwhile and stays; what the run made of it would be put beside it"); err != nil {
			return err
		}
	}
	before := version{}
	if s.host.kind != absent && s.host.kind != directory {
		before = versionAt(t.w.root, s.path)
	}
	if s.run.kind != directory {
		return d.file(s.path, before, t.version(s.path))
	}
	if before.kind != absent {
		if err := d.file(s.path, before, version{}); err != nil {
			return err
		}
	}
	for _, path := range s.added {
		i, err := t.upper.stat(path)
		if err == nil && i.kind == directory {
			err = d.say("", path, ": directory added")
		} else if err == nil {
			err = d.file(path, version{}, t.version(path))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// version is what the layer has at a path, with the mode that it would land with.
func (t *Txn) version(path string) version {
	v := versionAt(t.upper, path)
	if mode, known := t.modes[path]; known {
		v.mode = mode
	}
	v.mode = v.landedMode()
	return v
}
