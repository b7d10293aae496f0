package overlay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// land lands the transaction. One landing of a workspace goes on at a time, in all processes.
func (t *Txn) land(ctx context.Context) (Report, error) {
	lock, err := t.w.lock(ctx, unix.LOCK_EX)
	if err != nil {
		return Report{}, err
	}
	defer lock.unlock()
	p, count, err := t.planned(ctx)
	if err != nil {
		return Report{Discarded: count, Reason: "landing failed"}, err
	}
	if p.refused || len(p.steps) == 0 {
		return p.report, nil
	}
	l := lander{
		t: t, host: t.w.root, report: p.report,
		modes: map[string]uint32{}, before: map[string]inode{}, moved: map[uint64]bool{},
	}
	// From here on the landing is not cancelled: it would take as long to take it back.
	err = l.run(p.steps)
	if err == nil {
		return l.report, nil
	}
	report := Report{Discarded: count, Reason: "landing failed"}
	var refused *conflictError
	if errors.As(err, &refused) && !t.stuck {
		report.Reason = conflictReason(refused.path)
		report.Conflicts = []Conflict{{Path: refused.path}}
		err = nil
	}
	report.Notes = l.report.Notes
	return report, err
}

// planned collects and plans. The workspace is not ours alone: if a directory goes away while the
// walk is in it, the walk starts over.
func (t *Txn) planned(ctx context.Context) (p plan, count int, err error) {
	if err := t.w.unmoved(); err != nil {
		return plan{}, 0, err
	}
	now, err := takeMarker(ctx, t.dir)
	if err != nil {
		return plan{}, 0, err
	}
	trusted := t.trusted && t.begin.steadyUntil(now)
	for range 5 {
		var c *collector
		c, err = t.collect(ctx, trusted)
		count = c.count()
		if err == nil {
			return c.plan(t.w.config.OnConflict == "discard"), count, nil
		}
		if !is(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) {
			break
		}
	}
	return plan{}, count, err
}

// conflictError ends a landing that allows no conflict, or meets one that it cannot put beside.
type conflictError struct{ path string }

func (e *conflictError) Error() string { return conflictReason(e.path) }

// errLate is a conflict that was found when the step was taken: someone changed the path after it
// was judged.
var errLate = errors.New("changed meanwhile")

// lander takes the steps of one landing and knows how to take them back.
type lander struct {
	t      *Txn
	host   *tree
	report Report
	undo   []func() error
	// modes are those of directories of the workspace that had to be made writable for a while.
	modes map[string]uint32
	// before are the directories whose names change, as they were, for the footprints.
	before map[string]inode
	// moved are the inodes that steps moved out of the workspace.
	moved map[uint64]bool
	taken int
}

// run takes all the steps or, in effect, none.
func (l *lander) run(steps []step) error {
	if err := l.t.begun(); err != nil {
		return err
	}
	err := l.take(steps)
	if err != nil {
		err = l.takeBack(err)
	}
	l.leaveFootprints()
	if !l.t.stuck {
		// Nothing in the layer is needed any more. If this fails it is only kept for longer.
		_ = unix.Unlinkat(l.t.dir.fd, "landing", 0)
	}
	return err
}

// begun notes in the layer that it holds content of the workspace from now on.
func (t *Txn) begun() error {
	fd, err := unix.Openat(t.dir.fd, "landing", unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return t.dir.fail("create", "landing", err)
	}
	return unix.Close(fd)
}

func (l *lander) take(steps []step) error {
	for i, s := range steps {
		if s.kind == applyMode && (i == 0 || steps[i-1].kind != applyMode) {
			if err := l.restoreModes(); err != nil {
				return err
			}
		}
		if err := l.step(s); err != nil {
			return fmt.Errorf("%s: %w", Quote(reportPath(s.path)), err)
		}
	}
	return l.restoreModes()
}

// step takes one step and notes what the report says of it.
func (l *lander) step(s step) error {
	if s.kind != applyMode {
		if err := l.noteBefore(parentPath(s.path)); err != nil {
			return err
		}
	}
	err := l.apply(s)
	if err == errLate {
		return l.late(s)
	}
	if err != nil || s.kind == putBeside {
		return err
	}
	l.report.Added = append(l.report.Added, s.added...)
	l.report.Modified = append(l.report.Modified, s.modified...)
	l.report.Deleted = append(l.report.Deleted, s.deleted...)
	return nil
}

func (l *lander) apply(s step) error {
	switch s.kind {
	case takeAway:
		return l.takeAway(s)
	case removeDir:
		return l.removeDir(s)
	case putNew:
		return l.putNew(s)
	case swapIn:
		return l.swapIn(s)
	case putBeside:
		return l.putBeside(s)
	case applyMode:
		return l.applyMode(s)
	}
	return fmt.Errorf("bug: a step of kind %d", s.kind)
}

// late handles a conflict that was found only now.
func (l *lander) late(s step) error {
	switch {
	case l.t.w.config.OnConflict == "discard":
		return &conflictError{reportPath(s.path)}
	case s.unit != "":
		// Part of the git directory may have landed already: all of the run goes back.
		return &conflictError{reportPath(s.path)}
	case s.kind == putNew || s.kind == swapIn:
		return l.putBeside(s)
	case len(s.deleted) > 0 || s.kind == applyMode:
		l.report.Conflicts = append(l.report.Conflicts, Conflict{Path: reportPath(s.path)})
	}
	return nil
}

// takeBack undoes the steps, the last first.
func (l *lander) takeBack(cause error) error {
	var failed []error
	for _, undo := range slices.Backward(l.undo) {
		if err := undo(); err != nil {
			failed = append(failed, err)
		}
	}
	failed = append(failed, l.restoreModes())
	if err := errors.Join(failed...); err != nil {
		l.t.stuck = true
		return fmt.Errorf("%w; and what had landed could not be taken back, the layer is kept: %w", cause, err)
	}
	return cause
}

// restoreModes gives the directories that were made writable the modes that they had.
func (l *lander) restoreModes() error {
	var failed []error
	for path, mode := range l.modes {
		if err := l.host.chmod(path, mode); err != nil && !is(err, unix.ENOENT) {
			failed = append(failed, err)
		}
	}
	clear(l.modes)
	return errors.Join(failed...)
}

// noteBefore keeps what a directory was before this landing changed a name in it.
func (l *lander) noteBefore(path string) error {
	if _, known := l.before[path]; known {
		return nil
	}
	i, err := l.host.stat(path)
	if err == nil && i.kind == directory {
		l.before[path] = i
	}
	return err
}

// leaveFootprints notes which directories this landing changed. Without footprints more looks touched
// than is, so an error is no reason for a landing to fail.
func (l *lander) leaveFootprints() {
	var prints []footprint
	for path, before := range l.before {
		after, err := l.host.stat(path)
		if err == nil && after.ino == before.ino && after.ctime != before.ctime {
			prints = append(prints, footprint{ino: after.ino, before: before.ctime, after: after.ctime})
		}
	}
	_ = addFootprints(l.t.w.state, prints)
}
