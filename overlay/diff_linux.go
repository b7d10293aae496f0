package overlay

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Diff writes what a run changed, an id or "" for the last one that can be undone, as a unified diff
// of text files; of other kinds it says what became of them. A path that someone changed since is
// named, and not shown: what landed there is not kept. Of a run that waits for review it shows what
// would land now, and where nothing landed but versions beside what someone else had changed, it names those. Names and
// content are escaped, so that the result is text for a terminal; it is no patch where they hold control characters.
//
// The error is [ErrNoLanding], a [NotKeptError], a [DirectError] or a [ParkedError], or one of the writer.
func (w *Workspace) Diff(ctx context.Context, run string, out io.Writer) error {
	lock, err := w.lockShared(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if waits, err := w.waits(run); err != nil || waits {
		if err == nil {
			err = w.diffWaiting(ctx, run, out)
		}
		return reviewError("diff", err)
	}
	h, e, err := w.findEntry(run)
	if err != nil {
		return historyError("diff", err)
	}
	defer h.close()
	if e.state != "" {
		return &NotKeptError{Run: e.run, Undone: e.state == entryUndone}
	}
	return historyError("diff", w.diff(ctx, h, e, out))
}

func (w *Workspace) diff(ctx context.Context, h *tree, e historyEntry, out io.Writer) error {
	r, err := h.readEntry(e)
	if err != nil {
		return err
	}
	if beside, only := r.putBeside(); only {
		_, err := fmt.Fprintln(out, nothingLanded(beside))
		return err
	}
	kept, err := h.sub(e.String())
	if err != nil {
		return err
	}
	defer kept.close()
	u, err := w.newUndoing(kept, r)
	if err != nil {
		return err
	}
	if err := u.showAll(ctx, r, out); err != nil || r.With == nil {
		return err
	}
	git, err := w.gitAt(string(r.With.Dir))
	if err != nil {
		return err
	}
	lock, err := git.lockShared(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	g, gh, err := git.findHalf(r.With)
	if err != nil {
		return err
	}
	defer gh.close()
	defer g.kept.close()
	if r, err = gh.readEntry(g.entry); err != nil {
		return err
	}
	g.prefix = w.prefixOf(git)
	return g.showAll(ctx, r, out)
}

// showAll writes what all the steps did.
func (u *undoing) showAll(ctx context.Context, r record, out io.Writer) error {
	d := differ{out, u.prefix}
	deleted := map[string]bool{}
	for _, path := range r.Report.Deleted {
		deleted[string(path)] = true
	}
	slices.SortStableFunc(u.steps, func(a, b step) int { return strings.Compare(a.path, b.path) })
	for _, s := range u.steps {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := u.show(s, deleted[s.path], d); err != nil {
			return err
		}
	}
	return nil
}

// show writes what one step did.
func (u *undoing) show(s step, deleted bool, d differ) error {
	switch s.kind {
	case takeAway:
		return d.file(s.path, versionAt(u.kept, s.name()), version{})
	case removeDir:
		if deleted {
			return d.say("removed directory ", s.path, "")
		}
		return nil
	case applyMode:
		return d.say(fmt.Sprintf("mode %04o to %04o of directory ", s.host.mode, s.run.mode), reportPath(s.path), "")
	}
	before := version{}
	if s.kind == swapIn {
		before = versionAt(u.kept, s.name())
	}
	now, err := u.w.root.stat(s.path)
	switch {
	case err != nil:
		return err
	case s.landed.kind == directory && now.kind == directory && now.ino == s.landed.ino && u.since != nil:
		if before.kind != absent {
			if err := d.file(s.path, before, version{}); err != nil {
				return err
			}
		}
		return u.showDir(s.path, d)
	case !u.unchanged(s, now):
		return d.say("", s.path, " was changed since")
	}
	return d.file(s.path, before, versionAt(u.w.root, s.path))
}

// showDir writes what is in a directory that landed whole.
func (u *undoing) showDir(path string, d differ) error {
	names, err := u.w.root.list(path)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return d.say("added directory ", path, "")
	}
	for _, name := range names {
		below := joinPath(path, name)
		now, err := u.w.root.stat(below)
		switch {
		case err != nil:
			return err
		case now.kind == directory:
			err = u.showDir(below, d)
		case !now.ctime.before(*u.since):
			err = d.say("", below, " was changed since")
		default:
			err = d.file(below, version{}, versionAt(u.w.root, below))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
