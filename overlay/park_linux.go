package overlay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"airlock/internal/clearing"
)

// Park ends the transaction of a run that ended well without landing it: its changes wait for review,
// for as long as it takes, until [Workspace.LandWaiting] or [Workspace.DiscardWaiting]. No run sees
// them meanwhile. The conditions are those of Land.
//
// The Report says what would land, and what already is in conflict, and its Waiting is the run. A run
// that changed nothing does not wait. If the error is not nil, nothing waits.
func (t *Txn) Park(ctx context.Context) (Report, error) {
	if t.ended {
		return Report{}, errors.New("overlay: bug: transaction ended twice")
	}
	report, err := t.park(ctx)
	report.Notes = append(report.Notes, t.w.TakeNotes()...)
	report.sort()
	if report.Waiting != "" {
		t.close()
		return report, nil
	}
	if err := errors.Join(err, t.end()); err != nil {
		return report, fmt.Errorf("overlay: park: %w", err)
	}
	return report, nil
}

func (t *Txn) park(ctx context.Context) (Report, error) {
	lock, err := t.w.lockShared(ctx)
	if err != nil {
		return Report{}, err
	}
	defer lock.Unlock()
	if t.layers != t.dir {
		return Report{}, errors.New("the layer lies on another filesystem, where it can't wait")
	}
	t.noted = sightings{}
	c, err := t.judged(ctx)
	if err != nil {
		report := Report{Reason: "parking failed"}
		if c != nil {
			report.Discarded = c.count()
		}
		return report, err
	}
	report := c.plan(false).preview()
	lost := t.innerChanges(ctx)
	report.Withheld = append(report.Withheld, lost...)
	report.Notes = append(t.mountNotes(lost), t.notes...)
	if len(report.Added)+len(report.Modified)+len(report.Deleted)+len(report.Conflicts) == 0 {
		report.Landed = true
		return report, nil
	}
	if err := t.wait(ctx, c, report); err != nil {
		return Report{Discarded: c.count(), Reason: "parking failed"}, err
	}
	report.Waiting = t.run
	return report, nil
}

// wait moves the layer to where runs wait, with its record. It waits from the rename on; a server that
// is killed before that leaves scratch like any other.
func (t *Txn) wait(ctx context.Context, c *collector, report Report) error {
	root, err := statAt(t.w.root.fd, "")
	if err != nil {
		return err
	}
	r := &waitingRecord{
		Run: t.run, What: t.what, Time: time.Now(), Root: *recordInode(root), Trusted: c.trusted,
		Hide: t.w.filter.hidden.patterns, Protect: t.w.config.Protect, Ignore: t.w.config.Ignore, Report: recordReport(report),
	}
	if r.Bytes, err = layerUsage(ctx, t.upper, nil, t.modes); err != nil {
		return err
	}
	r.see(c)
	names, err := t.dir.list("")
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == "upper" {
			continue
		}
		if err := clearing.Beneath(t.dir.fd, name); err != nil {
			return err
		}
	}
	if err := t.w.syncTree(t.upper, ""); err != nil {
		return err
	}
	if err := t.w.writeWaiting(t.dir, r); err != nil {
		return err
	}
	if err := t.w.notePlace(); err != nil {
		return err
	}
	base := t.w.scratch.base
	waiting, err := base.sub(waitingName)
	if is(err, unix.ENOENT) {
		if err := unix.Mkdirat(base.fd, waitingName, 0o700); err != nil && err != unix.EEXIST {
			return base.fail("mkdir", waitingName, err)
		}
		waiting, err = base.sub(waitingName)
	}
	if err != nil {
		return err
	}
	defer waiting.close()
	if err := unix.Fchmod(t.dir.fd, 0o700); err != nil {
		return t.dir.fail("chmod", "", err)
	}
	if err := move(t.w.scratch.server, t.run, waiting, t.run, unix.RENAME_NOREPLACE); err != nil {
		return err
	}
	for _, dir := range []*tree{waiting, base} {
		if err := t.w.sync(dir, ""); err != nil {
			t.w.addNote("What waits for review may not survive a loss of power: " + Quote(err.Error()) + ".")
		}
	}
	return nil
}

// preview is what the report of a landing would say that takes every step.
func (p plan) preview() Report {
	r := p.report
	r.Landed = false
	for _, s := range p.steps {
		if s.kind == putBeside {
			r.Conflicts = append(r.Conflicts, Conflict{Path: s.path})
			continue
		}
		r.Added = append(r.Added, s.added...)
		r.Modified = append(r.Modified, s.modified...)
		r.Deleted = append(r.Deleted, s.deleted...)
	}
	r.sort()
	return r
}
