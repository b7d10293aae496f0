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
		if err := say(out, held.Path, " is withheld: "+held.Why); err != nil {
			return err
		}
	}
	for _, conflict := range p.report.Conflicts {
		if err := say(out, conflict.Path, " changed meanwhile and stays"); err != nil {
			return err
		}
	}
	return nil
}

// show writes what one step would do.
func (t *Txn) show(s step, out io.Writer) error {
	u := &undoing{w: t.w} // for how it writes files
	switch s.kind {
	case takeAway:
		return u.showFile(s.path, u.version(t.w.root, s.path), version{}, out)
	case removeDir:
		if len(s.deleted) > 0 {
			return say(out, s.path, ": directory removed")
		}
		return nil
	case applyMode:
		return say(out, reportPath(s.path), fmt.Sprintf(": directory, mode %04o to %04o", s.host.mode, s.run.mode))
	}
	if s.conflict {
		if err := say(out, s.path, " changed meanwhile and stays; what the run made of it would be put beside it"); err != nil {
			return err
		}
	}
	before := version{}
	if s.host.kind != absent && s.host.kind != directory {
		before = u.version(t.w.root, s.path)
	}
	if s.run.kind != directory {
		return u.showFile(s.path, before, t.version(u, s.path), out)
	}
	if before.kind != absent {
		if err := u.showFile(s.path, before, version{}, out); err != nil {
			return err
		}
	}
	for _, path := range s.added {
		i, err := t.upper.stat(path)
		if err == nil && i.kind == directory {
			err = say(out, path, ": directory added")
		} else if err == nil {
			err = u.showFile(path, version{}, t.version(u, path), out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// version is what the layer has at a path, with the mode that it would land with.
func (t *Txn) version(u *undoing, path string) version {
	v := u.version(t.upper, path)
	if mode, known := t.modes[path]; known {
		v.mode = mode
	}
	v.mode = v.landedMode()
	return v
}

// say writes a sentence that begins with a path.
func say(out io.Writer, path, text string) error {
	_, err := io.WriteString(out, Literal(path)+text+"\n")
	return err
}
