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
// would land now. Names and content are escaped, so that the result is text for a terminal; it is no
// patch where they hold control characters.
//
// The error is [ErrNoLanding], a [NotKeptError] or a [ParkedError], or one of the writer.
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
	deleted := map[string]bool{}
	for _, path := range r.Report.Deleted {
		deleted[string(path)] = true
	}
	slices.SortStableFunc(u.steps, func(a, b step) int { return strings.Compare(a.path, b.path) })
	for _, s := range u.steps {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := u.show(s, deleted[s.path], out); err != nil {
			return err
		}
	}
	return nil
}

// show writes what one step did.
func (u *undoing) show(s step, deleted bool, out io.Writer) error {
	switch s.kind {
	case takeAway:
		return u.showFile(s.path, u.version(u.kept, s.name()), version{}, out)
	case removeDir:
		if deleted {
			return u.line(out, "removed directory %s", s.path)
		}
		return nil
	case applyMode:
		return u.line(out, fmt.Sprintf("mode %04o to %04o of directory %%s", s.host.mode, s.run.mode), reportPath(s.path))
	}
	before := version{}
	if s.kind == swapIn {
		before = u.version(u.kept, s.name())
	}
	now, err := u.w.root.stat(s.path)
	switch {
	case err != nil:
		return err
	case s.landed.kind == directory && now.kind == directory && now.ino == s.landed.ino && u.since != nil:
		if before.kind != absent {
			if err := u.showFile(s.path, before, version{}, out); err != nil {
				return err
			}
		}
		return u.showDir(s.path, out)
	case !u.unchanged(s, now):
		return u.line(out, "%s was changed since", s.path)
	}
	return u.showFile(s.path, before, u.version(u.w.root, s.path), out)
}

// showDir writes what is in a directory that landed whole.
func (u *undoing) showDir(path string, out io.Writer) error {
	names, err := u.w.root.list(path)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return u.line(out, "added directory %s", path)
	}
	for _, name := range names {
		below := joinPath(path, name)
		now, err := u.w.root.stat(below)
		switch {
		case err != nil:
			return err
		case now.kind == directory:
			err = u.showDir(below, out)
		case !now.ctime.before(*u.since):
			err = u.line(out, "%s was changed since", below)
		default:
			err = u.showFile(below, version{}, u.version(u.w.root, below), out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// version is what was at a path at one time.
type version struct {
	inode
	content []byte // of a text file, or of a link
	binary  bool   // or too large to be shown, or unreadable
}

func (u *undoing) version(t *tree, path string) version {
	i, err := t.stat(path)
	v := version{inode: i}
	switch {
	case err != nil:
		v.binary = true
	case i.kind == symlink:
		text, err := t.readlink(path)
		v.content, v.binary = []byte(text), err != nil
	case i.kind == regular && i.size <= diffLimit:
		f, err := t.file(path)
		if err != nil {
			v.binary = true
			return v
		}
		defer f.Close()
		v.content, err = io.ReadAll(io.LimitReader(f, diffLimit))
		v.binary = err != nil || !isText(v.content)
	default:
		v.binary = true
	}
	return v
}

// showFile writes the difference of two versions of a file or link.
func (u *undoing) showFile(path string, a, b version, out io.Writer) error {
	if a.kind != absent && b.kind != absent && a.kind != b.kind {
		if err := u.showFile(path, a, version{}, out); err != nil {
			return err
		}
		return u.showFile(path, version{}, b, out)
	}
	var text strings.Builder
	path = u.shown(path)
	fmt.Fprintf(&text, "diff %s %s\n", Literal("a/"+path), Literal("b/"+path))
	aName, bName := Literal("a/"+path), Literal("b/"+path)
	switch {
	case a.kind == absent:
		fmt.Fprintf(&text, "new %s mode %04o\n", kindNames[b.kind], b.mode)
		aName = "/dev/null"
	case b.kind == absent:
		fmt.Fprintf(&text, "deleted %s mode %04o\n", kindNames[a.kind], a.mode)
		bName = "/dev/null"
	case a.mode != b.mode && a.kind != symlink:
		fmt.Fprintf(&text, "old mode %04o\nnew mode %04o\n", a.mode, b.mode)
	}
	if a.binary || b.binary {
		fmt.Fprintf(&text, "Binary files %s and %s differ\n", aName, bName)
	} else if string(a.content) != string(b.content) {
		fmt.Fprintf(&text, "--- %s\n+++ %s\n", aName, bName)
		unified(&text, a.content, b.content)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// line writes a sentence on a path.
func (u *undoing) line(out io.Writer, format, path string) error {
	_, err := fmt.Fprintf(out, format+"\n", Literal(u.shown(path)))
	return err
}

// shown is a path as the workspace has it.
func (u *undoing) shown(path string) string {
	if u.prefix == "" {
		return path
	}
	return joinPath(u.prefix, path)
}
