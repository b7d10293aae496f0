package overlay

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"airlock/internal/filelock"
)

// A landing that changes the workspace and its git directory outside lands in both or in neither. There are two
// journals, and one rename in two directories is not to be had, so one of them is the moment of truth:
//
//	lock      the workspace, then the git directory
//	stage     both
//	record    the workspace's journal, which names the git directory's landing; then the git directory's
//	apply     the git directory's steps, the workspace's steps
//	seal      the record of each is written beside what it replaced
//	enter     the git directory's landing into its history: now it has landed; then the workspace's into its own
//	settle    the git directory's journal goes, then the workspace's
//
// The git directory's journal is like any other: whoever finds it takes the steps back, or, where the landing is
// in the history, finishes. Who finds the workspace's looks whether the git directory's history has the other
// half, and takes back or enters the workspace's accordingly. All that a dead process did not do then is what
// nobody does after it, so the answer does not change, whichever of the two is looked at first.

// gitPlan is the plan of a git directory, in a landing of a workspace.
type gitPlan struct {
	plan
	count  int
	prefix string // of its paths, in the report of the workspace
}

// planGit locks and plans the git directory of a transaction.
func (t *Txn) planGit(ctx context.Context) (p gitPlan, lock *filelock.Lock, err error) {
	g := t.git
	if lock, err = g.w.lockClean(ctx); err != nil {
		return gitPlan{}, nil, err
	}
	g.what = t.what
	p.plan, p.count, err = g.planned(ctx)
	if err != nil {
		lock.Unlock()
		return gitPlan{}, nil, err
	}
	p.prefix = t.w.prefixOf(g.w)
	return p, lock, nil
}

// prefixOf is the path that leads to a git directory from the workspace.
func (w *Workspace) prefixOf(git *Workspace) string {
	rel, err := filepath.Rel(w.root.path, git.root.path)
	if err != nil {
		return git.root.path
	}
	return rel
}

// below is the report of a directory in terms of another one.
func (r Report) below(prefix string) Report {
	at := func(path string) string {
		if path == "." {
			return prefix
		}
		return joinPath(prefix, path)
	}
	all := func(paths []string) (out []string) {
		for _, path := range paths {
			out = append(out, at(path))
		}
		return out
	}
	r.Added, r.Modified, r.Deleted = all(r.Added), all(r.Modified), all(r.Deleted)
	conflicts, withheld := r.Conflicts, r.Withheld
	r.Conflicts, r.Withheld = nil, nil
	for _, c := range conflicts {
		c.Path = at(c.Path)
		if c.KeptAs != "" {
			c.KeptAs = at(c.KeptAs)
		}
		r.Conflicts = append(r.Conflicts, c)
	}
	for _, w := range withheld {
		w.Path = at(w.Path)
		r.Withheld = append(r.Withheld, w)
	}
	return r
}

// and adds what another report lists.
func (r Report) and(o Report) Report {
	r.Added = append(r.Added, o.Added...)
	r.Modified = append(r.Modified, o.Modified...)
	r.Deleted = append(r.Deleted, o.Deleted...)
	r.Conflicts = append(r.Conflicts, o.Conflicts...)
	r.Withheld = append(r.Withheld, o.Withheld...)
	r.Notes = append(r.Notes, o.Notes...)
	return r
}

// refuseWith makes one plan of two, one of which lands nothing.
func (p *plan) refuseWith(count int, git gitPlan) {
	conflicts := p.report.Conflicts
	reason := p.report.Reason
	if git.refused {
		theirs := git.report.below(git.prefix).Conflicts
		if conflicts = append(conflicts, theirs...); !p.refused {
			conflicts, reason = theirs, conflictReason(theirs[0].Path)
		}
	}
	p.refused = true
	p.report = Report{Discarded: count + git.count, Conflicts: conflicts, Reason: reason, Notes: p.report.Notes}
}

// runJointly takes the steps of the workspace's landing and of its git directory's.
func (l *lander) runJointly(r record, undoesGit string) error {
	g := l.with
	rg, err := g.record(undoesGit)
	if err != nil {
		return err
	}
	rg.Of = rawPath(l.host.path)
	r.With = &recordedWith{Dir: rawPath(g.host.path), Base: rawPath(g.w.scratch.base.path), Entry: rg.Entry}
	if err := l.w.writeJournal(r); err != nil {
		return errors.Join(err, l.w.removeJournal())
	}
	err = g.w.writeJournal(rg)
	if err == nil {
		err = g.take()
		var refused *conflictError
		if errors.As(err, &refused) {
			err = &conflictError{joinPath(l.gitPrefix, refused.path)}
		}
	}
	if err == nil {
		err = l.take()
	}
	if err == nil {
		l.report = l.report.and(g.report.below(l.gitPrefix))
		err = errors.Join(g.seal(rg), l.seal(r))
	}
	if err == nil {
		err = g.enter(rg)
	}
	if err != nil {
		err = l.takeBack(g.takeBack(err))
	} else {
		l.enterSecond(r)
		told := len(g.report.Notes)
		g.settle(rg, g.w.scratch.base)
		l.report.Notes = append(l.report.Notes, g.report.Notes[told:]...)
		if !l.t.stuck {
			l.settle(r, l.w.scratch.base)
		}
	}
	g.leaveFootprints()
	l.leaveFootprints()
	return err
}

// enterSecond enters the workspace's half of a landing that has landed. If it fails, the journal stays, and
// whoever comes next does it.
func (l *lander) enterSecond(r record) {
	if err := l.enter(r); err != nil {
		l.t.stuck = true
		l.report.Notes = append(l.report.Notes, "The landing could not be entered into the history, which the next one will try again: "+Quote(err.Error())+".")
	}
}

// landedWith reports whether the git directory's half of a landing that was cut off has landed.
func (w *Workspace) landedWith(with *recordedWith) (bool, error) {
	// Opening it recovers it, so that both are whole again before anything else happens. Where that fails, the
	// history still says which it will be.
	if git, err := w.openGit(string(with.Dir)); err != nil {
		w.addNote("The git directory " + Quote(string(with.Dir)) + ", which a landing that was cut off had changed too, can't be looked after: " + Quote(err.Error()) + ".")
	} else if err := git.Close(); err != nil {
		return false, err
	} else {
		for _, note := range git.TakeNotes() {
			w.addNote(note)
		}
	}
	base, err := openTree(string(with.Base))
	if is(err, unix.ENOENT, unix.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer base.close()
	base.hook = w.hook
	h, err := openHistory(base)
	if h == nil {
		return false, err
	}
	defer h.close()
	_, found, err := h.entryWith(with)
	return found, err
}

// entryWith finds the other half of a landing.
func (h *tree) entryWith(with *recordedWith) (historyEntry, bool, error) {
	entries, err := h.entries()
	if err != nil {
		return historyEntry{}, false, err
	}
	for _, e := range entries {
		if entryKey(e.String()) == entryKey(with.Entry) {
			return e, true, nil
		}
	}
	return historyEntry{}, false, nil
}

// enterRecovered enters the workspace's half of a landing that was cut off after it had landed.
func (l *lander) enterRecovered(r record, base *tree) error {
	rel, err := filepath.Rel(base.path, filepath.Join(string(r.Layer), landingName))
	if err != nil || strings.HasPrefix(rel, "..") {
		return errDamaged
	}
	history, err := makeHistory(base)
	if err != nil {
		return err
	}
	defer history.close()
	return move(base, rel, history, r.Entry, unix.RENAME_NOREPLACE)
}
