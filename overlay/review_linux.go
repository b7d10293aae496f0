package overlay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"airlock/internal/clearing"
)

// Waiting lists the runs that wait for review, the newest first.
func (w *Workspace) Waiting(ctx context.Context) ([]Waiting, error) {
	lock, err := w.lockShared(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	runs, err := waitingRuns(w.scratch.base)
	if err != nil {
		return nil, fmt.Errorf("overlay: waiting: %w", err)
	}
	var all []Waiting
	for _, run := range runs {
		one := Waiting{Run: run}
		r, dir, err := w.openWaiting(run)
		if r != nil {
			one.Time, one.What, one.Report, one.Bytes = r.Time, r.What, r.Report.report(), r.Bytes
			one.Report.Landed, one.Report.Waiting = false, run
		}
		if dir != nil {
			dir.close()
		}
		one.Fault = err
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b Waiting) int { return b.Time.Compare(a.Time) })
	return all, nil
}

// waitingRuns lists the ids.
func waitingRuns(base *tree) ([]string, error) {
	names, err := base.list(waitingName)
	if is(err, unix.ENOENT) {
		return nil, nil
	}
	return slices.DeleteFunc(names, func(name string) bool { return !isRunID(name) }), err
}

// openWaiting opens the directory of a run that waits. The record comes even with an error, if it could
// be read.
func (w *Workspace) openWaiting(run string) (r *waitingRecord, dir *tree, err error) {
	if isRunID(run) {
		dir, err = w.scratch.base.sub(joinPath(waitingName, run))
	}
	if dir == nil && (err == nil || is(err, unix.ENOENT)) {
		runs, err := waitingRuns(w.scratch.base)
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, &NotWaitingError{Run: run, Waiting: runs}
	}
	if err == nil {
		if r, err = readWaiting(dir, run); err == nil && r.Root.Ino != w.id.ino {
			err = fmt.Errorf("%s is another directory than the one that it worked in", Quote(w.root.path))
		}
		if err == nil {
			return r, dir, nil
		}
		dir.close()
	}
	return r, nil, &ParkedError{Run: run, Err: err}
}

// LandWaiting lands a run that waits. "" is the only one. It is a landing as any other: what someone
// changed since the run began is a conflict, it lands as a whole or not at all, and it can be undone.
// What must not land by the configuration of now does not, nor what must not by that of then.
//
// If nothing landed because of a conflict (see [Config.OnConflict]) or an error, the run waits on, and
// the Report's Waiting says so. The error is a [NotWaitingError] if there is no such run, and a
// [ParkedError] if what waits can't be used.
func (w *Workspace) LandWaiting(ctx context.Context, run string) (Report, error) {
	lock, err := w.lockClean(ctx)
	if err != nil {
		return Report{}, reviewError("land", err)
	}
	defer lock.Unlock()
	run, err = w.onlyWaiting(run)
	if err != nil {
		return Report{}, reviewError("land", err)
	}
	report, err := w.landWaiting(ctx, run)
	report.Notes = append(report.Notes, w.TakeNotes()...)
	report.sort()
	return report, reviewError("land", err)
}

func (w *Workspace) landWaiting(ctx context.Context, run string) (Report, error) {
	t, err := w.resume(run)
	if err != nil {
		return Report{Waiting: run}, err
	}
	report, err := t.landLocked(ctx)
	if err == nil && report.Landed {
		err = removeWaiting(w.scratch.base, run) // if there was nothing to land
	} else if !t.stuck {
		report.Discarded, report.Waiting = 0, run
	}
	return report, errors.Join(err, t.end())
}

// onlyWaiting is run, or the only one that waits.
func (w *Workspace) onlyWaiting(run string) (string, error) {
	if run != "" {
		return run, nil
	}
	runs, err := waitingRuns(w.scratch.base)
	if err == nil && len(runs) != 1 {
		err = &NotWaitingError{Waiting: runs}
	}
	if err != nil {
		return "", err
	}
	return runs[0], nil
}

// resume makes a transaction of a run that waits: one whose layer is a copy of the one that waits, so
// that what becomes of it can always be begun anew. The copy shares the files.
func (w *Workspace) resume(run string) (*Txn, error) {
	r, from, err := w.openWaiting(run)
	if err != nil {
		return nil, err
	}
	defer from.close()
	dir, err := w.scratch.server.mkdir(run, w.scratch.mode)
	if err != nil {
		return nil, err
	}
	t := &Txn{
		w: w, run: run, dir: dir, layers: dir, what: r.What, trusted: w.trusted && r.Trusted, modes: map[string]uint32{}, parked: r,
	}
	for _, m := range r.Modes {
		t.modes[string(m.Path)] = m.Mode
	}
	c := w.config
	c.Protect, c.Ignore = union(c.Protect, r.Protect), union(c.Ignore, r.Ignore)
	if t.filter, err = newFilter(c); err == nil {
		t.filter.hidden = w.filter.hidden
		t.filter.wasHidden, err = NewHidden(r.Hide)
	}
	if err == nil {
		t.landing, err = dir.mkdir(landingName, 0o700)
	}
	if err == nil {
		t.upper, err = t.cloneLayer(from)
	}
	if err != nil {
		return nil, errors.Join(err, t.end())
	}
	return t, nil
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// DiscardWaiting throws away a run that waits, also one that can't be landed. The error is a
// [NotWaitingError] if there is no such run.
func (w *Workspace) DiscardWaiting(ctx context.Context, run string) (Report, error) {
	lock, err := w.lockClean(ctx)
	if err != nil {
		return Report{}, reviewError("discard", err)
	}
	defer lock.Unlock()
	r, dir, err := w.openWaiting(run)
	if dir != nil {
		dir.close()
	}
	if err != nil && !errors.As(err, new(*ParkedError)) {
		return Report{}, reviewError("discard", err)
	}
	report := Report{Reason: "reviewed"}
	if r != nil {
		was := r.Report.report()
		report.Discarded = len(was.Added) + len(was.Modified) + len(was.Deleted) + len(was.Conflicts)
	}
	// What a rename took away waits no more, however long the removal takes.
	const aside = "discarded"
	base, server := w.scratch.base, w.scratch.server
	if err := move(base, joinPath(waitingName, run), server, aside, unix.RENAME_NOREPLACE); err != nil {
		return report, reviewError("discard", err)
	}
	return report, reviewError("discard", clearing.Beneath(server.fd, aside))
}

// removeWaiting removes a run that waited, if it is there, once it is in the history.
func removeWaiting(base *tree, run string) error {
	waiting, err := base.sub(waitingName)
	if is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer waiting.close()
	waiting.point()
	return clearing.Beneath(waiting.fd, run)
}

// isRunID reports whether a name can be that of a run.
func isRunID(run string) bool {
	return run != "" && len(run) <= 64 && strings.Trim(run, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// reviewError names the operation, but where the error is one for a person already.
func reviewError(op string, err error) error {
	if err == nil || errors.As(err, new(*NotWaitingError)) || errors.As(err, new(*ParkedError)) {
		return err
	}
	return fmt.Errorf("overlay: %s: %w", op, err)
}
