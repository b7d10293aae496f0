package overlay

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Undo takes back what a run landed: an id, or "" for the last one that was not taken back yet. It is
// a landing itself: what someone else changed since then stays, and is a conflict; it lands as a whole
// or not at all; and it can be taken back in its turn. Its report is in terms of what Undo does.
//
// The error is [ErrNoLanding], a [NotKeptError] where what the run replaced is not there any more, a [NothingLandedError], or a
// [DirectError]: with "" too, where the last run wrote to the workspace itself. An earlier one is not what is meant then.
func (w *Workspace) Undo(ctx context.Context, run string) (Report, error) {
	report, err := w.undo(ctx, run)
	report.Notes = append(report.Notes, w.TakeNotes()...)
	report.sort()
	return report, historyError("undo", err)
}

func (w *Workspace) undo(ctx context.Context, run string) (Report, error) {
	lock, err := w.lockClean(ctx)
	if err != nil {
		return Report{}, err
	}
	defer lock.Unlock()
	if err := w.unmoved(); err != nil {
		return Report{}, err
	}
	return w.undoLocked(ctx, run)
}

func (w *Workspace) undoLocked(ctx context.Context, run string) (Report, error) {
	h, e, err := w.findEntry(run)
	if err != nil {
		return Report{}, err
	}
	defer h.close()
	switch {
	case e.state == entryUndone:
		return Report{}, &NotKeptError{Run: e.run, Undone: true}
	case e.state == entryDropped:
		return Report{}, &NotKeptError{Run: e.run}
	}
	r, err := h.readEntry(e)
	if err != nil {
		return Report{}, err
	}
	if beside, only := r.putBeside(); only {
		// An undo that took nothing back left its run to be taken back, and that one is still the last.
		if of, undo := strings.CutPrefix(r.What, undoOf); undo && run == "" && r.Report.Undo {
			return w.undoLocked(ctx, of)
		}
		return Report{}, &NothingLandedError{Run: e.run, Beside: beside}
	}
	kept, err := h.sub(e.String())
	if err != nil {
		return Report{}, err
	}
	defer kept.close()
	u, err := w.newUndoing(kept, r)
	if err != nil {
		return Report{}, err
	}
	if err := u.readLater(h, e); err != nil {
		return Report{}, err
	}
	if r.Of != "" {
		return Report{}, fmt.Errorf("run %s landed in the workspace %s too, and is taken back there", r.Run, Quote(string(r.Of)))
	}
	if r.With != nil {
		release, err := u.openWith(ctx, r.With)
		if err != nil {
			return Report{}, err
		}
		defer release()
	}
	if err := u.judge(); err != nil {
		return Report{}, err
	}
	t, err := w.beginUndo(r.Run)
	if err != nil {
		return Report{}, err
	}
	if u.git != nil {
		if t.git, err = u.git.beginHalf(t); err != nil {
			return Report{}, errors.Join(err, t.end())
		}
	}
	report, err := u.land(ctx, t, e)
	report.Of, report.OfWhat = r.Run, r.What
	return report, errors.Join(err, t.end())
}

// undoOf begins what an undo is described by.
const undoOf = "undo of "

// beginUndo makes a transaction without a layer.
func (w *Workspace) beginUndo(of string) (*Txn, error) {
	var id [4]byte
	rand.Read(id[:])
	return w.beginWithoutLayer(hex.EncodeToString(id[:]), undoOf+of)
}

func (w *Workspace) beginWithoutLayer(run, what string) (*Txn, error) {
	dir, err := w.scratch.server.mkdir(run, w.scratch.mode)
	if err != nil {
		return nil, err
	}
	t := &Txn{w: w, run: run, dir: dir, trusted: w.trusted, modes: map[string]uint32{}, what: what}
	if t.landing, err = dir.mkdir(landingName, 0o700); err != nil {
		return nil, errors.Join(err, t.end())
	}
	return t, nil
}

// undoing is one landing that is being taken back.
type undoing struct {
	w     *Workspace
	kept  *tree // what it replaced and removed
	steps []step
	// since is a moment after everything that it put had been made, and before it was put.
	since *stamp
	began stamp // when it began to land

	c       collector // only changes are used
	gone    map[string]bool
	removed map[string]*restored // directories that it removed, with what they held
	sources map[string]*restored // what is put, by its path

	prints ownPrints
	dev    uint64      // of the workspace
	later  []takenBack // landings after it that were taken back, the newest undo first

	git *undoing // of the git directory outside that was landed in together; nil if none
	// Of git: what is taken back there, and the path that leads there from the workspace.
	entry  historyEntry
	prefix string
}

func (w *Workspace) newUndoing(kept *tree, r record) (*undoing, error) {
	u := &undoing{
		w: w, kept: kept, began: stamp{r.Time.Unix(), uint32(r.Time.Nanosecond())}, prints: ownPrints{state: w.state},
		gone: map[string]bool{}, removed: map[string]*restored{}, sources: map[string]*restored{},
	}
	root, err := statAt(w.root.fd, "")
	if err != nil {
		return nil, err
	}
	u.dev = root.dev
	if r.Marker != nil {
		u.since = &stamp{r.Marker.Sec, r.Marker.Nsec}
	}
	for _, recorded := range r.Steps {
		s, err := recorded.step(r.Root.Dev, root.dev)
		if err != nil {
			return nil, err
		}
		u.steps = append(u.steps, s)
		if s.kind == removeDir {
			u.removed[s.path] = &restored{step: s}
		}
	}
	return u, nil
}

// land lands what judge found.
func (u *undoing) land(ctx context.Context, t *Txn, e historyEntry) (Report, error) {
	p := u.c.plan(u.w.config.OnConflict == "discard")
	count := 0
	for _, ch := range u.c.changes {
		count += ch.count()
	}
	var git gitPlan
	undoesGit := ""
	if u.git != nil && !p.refused {
		git = u.planGit()
		undoesGit = u.git.entry.String()
		if git.refused || len(git.report.Withheld) > 0 {
			// A git directory is taken back whole or not at all, and so is the rest of this landing then.
			return Report{Discarded: count + git.count, Reason: conflictReason(git.prefix)}, nil
		}
	}
	if p.refused {
		return p.report, nil
	}
	l := t.landerWith(p, git)
	count += git.count
	err := u.stage(ctx, l)
	if err == nil && l.with != nil {
		err = u.git.stage(ctx, l.with)
	}
	l.report.Undo = true
	if err == nil {
		undoes := e.String()
		if git.count == 0 && len(u.c.changes) > 0 && !slices.ContainsFunc(u.c.changes, func(ch change) bool { return !ch.conflict }) {
			undoes = "" // all of it was changed since, so nothing is taken back, and it can be later
		}
		err = l.run(undoes, undoesGit)
	}
	return t.outcome(l, count, err)
}

// judge makes the changes.
func (u *undoing) judge() error {
	// What came in goes first, since it may be in the way.
	for _, s := range slices.Backward(u.steps) {
		if s.kind == putNew || s.kind == swapIn && s.landed.kind == directory {
			gone, err := u.remove(s)
			if err != nil {
				return err
			}
			u.gone[s.path] = gone
		}
	}
	var tops []*restored
	for _, s := range u.steps {
		if s.kind != takeAway && s.kind != removeDir {
			continue
		}
		r := u.removed[s.path]
		if s.kind == takeAway {
			r = &restored{step: s}
		}
		if dir := u.removed[parentPath(s.path)]; dir != nil {
			dir.below = append(dir.below, r)
		} else {
			tops = append(tops, r)
		}
	}
	for _, r := range tops {
		if err := u.restore(r); err != nil {
			return err
		}
	}
	for _, s := range u.steps {
		if s.kind == swapIn {
			if err := u.putBack(s); err != nil {
				return err
			}
		}
	}
	for _, s := range slices.Backward(u.steps) {
		if s.kind == applyMode {
			if err := u.resetMode(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// isObject reports whether the step is about an object of a git directory, or a directory of some.
func (s step) isObject() bool {
	rel := s.path
	if s.unit != "." {
		rel = strings.TrimPrefix(s.path, s.unit+"/")
	}
	return s.unit != "" && strings.HasPrefix(rel, "objects/")
}

// unchanged reports whether what a step put is as it was when it landed.
func (u *undoing) unchanged(s step, now inode) bool {
	landed := s.landed
	landed.links = now.links // the ctime tells
	if !u.w.trusted {
		landed.ctime = now.ctime
	}
	if landed.kind == absent || now == landed {
		return landed.kind != absent
	}
	return s.entries != nil && bytes.Equal(s.entries, u.w.indexAt(s.path))
}

// resetMode judges a directory whose mode the landing changed.
func (u *undoing) resetMode(s step) error {
	now, seen, err := u.stat(s.path)
	if err != nil {
		return err
	}
	if now.kind != directory || seen.ino != s.host.ino {
		now.kind = absent
	}
	run := now
	run.mode = s.host.mode
	u.c.changes = append(u.c.changes, change{
		kind: setMode, path: s.path, run: run, host: now, unit: s.unit, modified: []string{reportPath(s.path)},
		conflict: now.kind == absent || now.mode != s.run.mode,
	})
	return nil
}
