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
	p := c.plan(false)
	steps := slices.Clone(p.steps)
	slices.SortStableFunc(steps, func(a, b step) int { return strings.Compare(a.path, b.path) })
	for _, s := range steps {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := t.show(s, out); err != nil {
			return err
		}
	}
	for _, held := range p.report.Withheld {
		if err := line(out, "%s is withheld: "+held.Why, held.Path); err != nil {
			return err
		}
	}
	for _, conflict := range p.report.Conflicts {
		if err := line(out, "%s changed meanwhile and stays", conflict.Path); err != nil {
			return err
		}
	}
	return nil
}

// show writes what one step would do.
func (t *Txn) show(s step, out io.Writer) error {
	switch s.kind {
	case takeAway:
		return showFile(s.path, t.w.root.version(s.path), version{}, out)
	case removeDir:
		if len(s.deleted) > 0 {
			return line(out, "removed directory %s", s.path)
		}
		return nil
	case applyMode:
		return line(out, fmt.Sprintf("mode %04o to %04o of directory %%s", s.host.mode, s.run.mode), reportPath(s.path))
	}
	if s.conflict {
		if err := line(out, "%s changed meanwhile and stays; what the run made of it would be put beside it", s.path); err != nil {
			return err
		}
	}
	before := version{}
	if s.host.kind != absent && s.host.kind != directory {
		before = t.w.root.version(s.path)
	}
	if s.run.kind != directory {
		return showFile(s.path, before, t.version(s.path), out)
	}
	if before.kind != absent {
		if err := showFile(s.path, before, version{}, out); err != nil {
			return err
		}
	}
	for _, path := range s.added {
		i, err := t.upper.stat(path)
		if err == nil && i.kind == directory {
			err = line(out, "added directory %s", path)
		} else if err == nil {
			err = showFile(path, version{}, t.version(path), out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// version is what the layer has at a path, with the mode that it would land with.
func (t *Txn) version(path string) version {
	v := t.upper.version(path)
	if mode, known := t.modes[path]; known {
		v.mode = mode
	}
	v.mode = v.landedMode()
	return v
}
