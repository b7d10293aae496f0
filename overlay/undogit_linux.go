package overlay

import (
	"context"
	"fmt"
)

// openWith finds the half of the landing that is in a git directory outside, and judges it. The lock on the
// git directory is held until release is called.
func (u *undoing) openWith(ctx context.Context, with *recordedWith) (release func(), err error) {
	var opened []func()
	release = func() {
		for i := len(opened) - 1; i >= 0; i-- {
			opened[i]()
		}
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	git, err := u.w.gitAt(string(with.Dir))
	if err != nil {
		return nil, fmt.Errorf("the git directory %s, which the run changed too, can't be opened: %w", Quote(string(with.Dir)), err)
	}
	lock, err := git.lockClean(ctx)
	if err != nil {
		return nil, err
	}
	opened = append(opened, func() { lock.Unlock() })
	g, h, err := git.findHalf(with)
	if err != nil {
		return nil, err
	}
	opened = append(opened, func() { h.close() }, func() { g.kept.close() })
	u.git = g
	return release, g.judge()
}

// findHalf reads the entry of a landing that is one with another workspace's.
func (w *Workspace) findHalf(with *recordedWith) (u *undoing, h *tree, err error) {
	h, err = openHistory(w.scratch.base)
	if err != nil {
		return nil, nil, err
	}
	entry, _ := parseEntry(with.Entry)
	gone := &NotKeptError{Run: entry.run}
	if h == nil {
		return nil, nil, gone
	}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	e, found, err := h.entryWith(with)
	if err != nil {
		return nil, nil, err
	}
	if !found || e.state != "" {
		gone.Undone = e.state == entryUndone
		return nil, nil, gone
	}
	r, err := h.readEntry(e)
	if err != nil {
		return nil, nil, err
	}
	kept, err := h.sub(e.String())
	if err != nil {
		return nil, nil, err
	}
	if u, err = w.newUndoing(kept, r); err != nil {
		kept.close()
		return nil, nil, err
	}
	if err = u.readLater(h, e); err != nil {
		kept.close()
		return nil, nil, err
	}
	u.entry = e
	return u, h, nil
}

// beginHalf makes the transaction of the git directory, which is one with t.
func (u *undoing) beginHalf(t *Txn) (*Txn, error) { return u.w.beginWithoutLayer(t.run, t.what) }

// planGit plans the half in the git directory.
func (u *undoing) planGit() gitPlan {
	g := gitPlan{plan: u.git.c.plan(u.w.config.OnConflict == "discard"), prefix: u.w.prefixOf(u.git.w)}
	for _, ch := range u.git.c.changes {
		g.count += ch.count()
	}
	return g
}
