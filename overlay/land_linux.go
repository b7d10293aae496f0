package overlay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"airlock/internal/filelock"
)

// land lands the transaction. One landing of a workspace goes on at a time, in all processes.
func (t *Txn) land(ctx context.Context) (Report, error) {
	lock, err := t.w.lockClean(ctx)
	if err != nil {
		return Report{}, err
	}
	defer lock.Unlock()
	return t.landLocked(ctx)
}

// landLocked is land for who holds the lock.
func (t *Txn) landLocked(ctx context.Context) (Report, error) {
	p, count, err := t.planned(ctx)
	if err != nil {
		return Report{Discarded: count, Reason: "landing failed"}, err
	}
	var git gitPlan
	if t.git != nil {
		var lock *filelock.Lock
		if git, lock, err = t.planGit(ctx); err != nil {
			return Report{Discarded: count, Reason: "landing failed"}, err
		}
		defer lock.Unlock()
		if p.refused || git.refused {
			p.refuseWith(count, git)
		}
	}
	if p.refused {
		return p.report, nil
	}
	// Before the landing, whose entry in the history has them too.
	t.lost = t.innerChanges(ctx)
	p.report.Withheld = append(p.report.Withheld, t.lost...)
	if len(p.steps)+len(git.steps) == 0 {
		return p.report.and(git.report.below(git.prefix)), nil
	}
	l := t.landerWith(p, git)
	count += git.count
	err = l.stage(ctx)
	if err == nil {
		// From here on the landing is not cancelled: it would take as long to take it back.
		err = l.run("", "")
	}
	return t.outcome(l, count, err)
}

// outcome is what a landing returns that ended with an error, or none.
func (t *Txn) outcome(l *lander, count int, err error) (Report, error) {
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
	c, err := t.judged(ctx)
	if c != nil {
		count = c.count()
	}
	if err != nil {
		return plan{}, count, err
	}
	return c.plan(t.w.config.OnConflict == "discard"), count, nil
}

// judged is the collector after its walk. With an error it holds what it found so far, if anything.
func (t *Txn) judged(ctx context.Context) (c *collector, err error) {
	if err := t.w.unmoved(); err != nil {
		return nil, err
	}
	trusted := t.trusted
	if t.parked == nil {
		now, err := t.w.scratch.now(ctx)
		if err != nil {
			return nil, err
		}
		trusted = trusted && t.begin.steadyUntil(now)
	}
	if err := t.moveChanges(ctx); err != nil {
		return nil, err
	}
	for range 5 {
		c, err = t.collect(ctx, trusted)
		if err == nil || !is(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) {
			break
		}
	}
	return c, err
}

// conflictError ends a landing that allows no conflict, or meets one that it cannot put beside.
type conflictError struct{ path string }

func (e *conflictError) Error() string { return conflictReason(e.path) }

// errLate is a conflict that was found when the step was taken: someone changed the path after it
// was judged.
var errLate = errors.New("changed meanwhile")

// lander takes the steps of one landing, and takes them back.
type lander struct {
	t       *Txn // nil in a recovery
	w       *Workspace
	runID   string
	host    *tree
	landing *tree // see step.index
	upper   *tree // the layer, while it is being staged
	steps   []step
	report  Report
	// marker is a moment after everything was staged, and before the first step; nil if no directory was.
	marker *stamp
	// opened are the directories of the workspace that a step may have to make writable for a while, and
	// modes the ones that are so now.
	opened []recordedDir
	modes  map[string]inode
	// prints are the footprints so far, and lastPrint the last one of each inode.
	prints    footprints
	lastPrint map[uint64]int
	// moved are the inodes that steps moved out of the workspace.
	moved map[uint64]bool
	// taken are the steps that changed the workspace.
	taken map[int]bool
	// copier copies what comes from a layer that lies on another filesystem.
	copier *copier
	// stamps are the ctimes by the index of the step, as far as they are known; stampsFile is the file that
	// has them. links counts the names that one inode is put at.
	stamps     map[int]stamp
	stampsFile *os.File
	links      map[uint64]int
	// pruned counts what was taken out of new directories.
	pruned int
	// with is the landing in the git directory outside that this one is one with; nil if there is none.
	// gitPrefix is the path from here to there.
	with      *lander
	gitPrefix string
}

func (t *Txn) lander(p plan) *lander {
	return &lander{
		t: t, w: t.w, runID: t.run, host: t.w.root, landing: t.landing, steps: p.steps, report: p.report,
		modes: map[string]inode{}, lastPrint: map[uint64]int{}, moved: map[uint64]bool{}, taken: map[int]bool{},
	}
}

// landerWith makes the lander of a workspace and of its git directory outside, if that has something to land.
func (t *Txn) landerWith(p plan, git gitPlan) *lander {
	if len(git.steps) == 0 {
		p.report = p.report.and(git.report.below(git.prefix))
		return t.lander(p)
	}
	l := t.lander(p)
	l.with, l.gitPrefix = t.git.lander(git.plan), git.prefix
	return l
}

// run takes all the steps or, in effect, none. The arguments are what they take back, in the workspace and in the
// git directory.
func (l *lander) run(undoes, undoesGit string) error {
	r, err := l.record(undoes)
	if err != nil {
		return err
	}
	if l.with != nil {
		return l.runJointly(r, undoesGit)
	}
	if err := l.w.writeJournal(r); err != nil {
		return errors.Join(err, l.w.removeJournal())
	}
	err = l.take()
	if err == nil {
		err = l.finish(r)
	}
	if err != nil {
		err = l.takeBack(err)
	} else {
		l.settle(r, l.w.scratch.base)
	}
	l.leaveFootprints()
	return err
}

// record is what the journal says of the landing.
func (l *lander) record(undoes string) (record, error) {
	now := time.Now()
	root, err := statAt(l.host.fd, "")
	if err != nil {
		return record{}, err
	}
	if l.opened, err = l.openable(); err != nil {
		return record{}, err
	}
	r := record{
		Run: l.runID, What: l.t.what, Undoes: undoes, Time: now, Root: *recordInode(root), Layer: rawPath(l.t.dir.path),
		Opened: l.opened, Entry: newEntry(now, l.runID, l.replaced()).String(), Waited: l.t.parked != nil,
	}
	if l.marker != nil {
		r.Marker = &recordedStamp{l.marker.sec, l.marker.nsec}
	}
	for _, s := range l.steps {
		r.Steps = append(r.Steps, recordStep(s))
	}
	return r, nil
}

func (l *lander) take() error {
	for i, s := range l.steps {
		if s.kind == applyMode && (i == 0 || l.steps[i-1].kind != applyMode) {
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
	err := l.apply(s)
	if err == errOpen {
		l.note(reportPath(s.path), "is open for writing elsewhere")
		err = errLate
	}
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
	case l.w.config.OnConflict == "discard":
		return &conflictError{reportPath(s.path)}
	case s.unit != "":
		// Part of the git directory may have landed already: all of the run goes back.
		return &conflictError{reportPath(s.path)}
	case s.kind == swapIn && s.count() == 0:
		return nil // see relink
	case s.kind == putNew || s.kind == swapIn:
		return l.putBeside(s)
	case len(s.deleted) > 0 || s.kind == applyMode:
		l.conflict(s.path, "")
	}
	return nil
}

// takeBack makes the workspace what it was, after a step failed. Where it can't, whoever comes next does, as
// after the death of this process.
func (l *lander) takeBack(cause error) error {
	err := l.rollBack()
	if err == nil && l.t.parked != nil {
		l.seeAgain(l.w.scratch.base)
	}
	if err == nil {
		err = l.w.removeJournal()
	}
	if err == nil {
		return cause
	}
	// The journal stays, and the layer with what was there: what the filesystem refuses now it may grant later.
	l.t.stuck = true
	return fmt.Errorf("%w; and what had landed could not be taken back yet, which the next run or start tries again: %w", cause, err)
}
