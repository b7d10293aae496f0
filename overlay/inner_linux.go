package overlay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// innerLayer is the layer of something that is mounted in the workspace. A run sees it in its place, and
// can write there; what it changes does not land, since a rename does not cross filesystems.
type innerLayer struct {
	mount    mount
	path     string // absolute
	dir      *tree  // RUN/inner-N; nil with readOnly
	upper    *tree
	mask     *mask        // in dir; nil if nothing can be hidden there
	copied   *privateCopy // stands in for an overlay, if it is not nil
	readOnly bool
}

func (l *innerLayer) layer() Layer {
	switch {
	case l.readOnly:
		return Layer{Lower: l.path, ReadOnly: true}
	case l.copied != nil:
		return Layer{Lower: l.path, Copy: l.copied.tree.path}
	}
	layer := Layer{Lower: l.path, Upper: l.upper.path, Work: filepath.Join(l.dir.path, "work")}
	layer.Mask = l.mask.path()
	return layer
}

func (l *innerLayer) close() {
	if l.copied != nil {
		l.copied.tree.close()
	}
	for _, d := range []*tree{l.upper, l.dir} {
		if d != nil {
			d.close()
		}
	}
}

// prepareMounts makes layers for what is mounted in the workspace, and the copies that stand in for
// overlays. A mount within a mount can't be below an overlay of an ordinary user, nor of anyone in a user
// namespace: its lower layer would show what the inner mount covers, and the kernel says EINVAL.
func (t *Txn) prepareMounts(ctx context.Context, root inode) error {
	mounts, err := t.w.visibleMounts()
	if err != nil {
		return err
	}
	if len(mounts) > 0 || t.w.isRefused(t.w.root.path) {
		t.copied, err = newPrivateCopy(ctx, t.w.root, t.layers, "copy", t.w.copyLimit(), func(path string, k kind) bool {
			return t.w.scratch.inside && path == insideName || t.w.filter.hidden.Hides(path, k == directory)
		})
		if err != nil {
			return t.uncopied(err)
		}
	}
	var closed []string // hidden, or shown with all that is in it
	for i, m := range mounts {
		if reserved(baseName(m.path)) || slices.ContainsFunc(closed, func(dir string) bool { return strings.HasPrefix(m.path, dir+"/") }) {
			continue
		}
		if t.w.filter.hidden.Hides(m.path, true) || t.w.filter.hidden.Hides(m.path, false) {
			closed = append(closed, m.path)
			continue
		}
		l, why := t.openMount(m)
		switch {
		case why != "":
			closed = append(closed, m.path)
			t.hidden = append(t.hidden, fmt.Sprintf("What is mounted at %s was not shown to the run: %s.", Quote(m.path), why))
			continue
		case l.readOnly:
			closed = append(closed, m.path)
		default:
			within := slices.ContainsFunc(mounts, func(o mount) bool { return strings.HasPrefix(o.path, m.path+"/") })
			if err := t.prepareInner(ctx, l, "inner-"+strconv.Itoa(i), within, root); err != nil {
				return err
			}
		}
		t.inner = append(t.inner, l)
	}
	return nil
}

// uncopied says why there is no copy.
func (t *Txn) uncopied(err error) error {
	var large *tooLargeError
	if !errors.As(err, &large) && !is(err, unix.ENOSPC) {
		return err
	}
	why := "it can't be the lower layer of an overlay on this host"
	if !t.w.isRefused(t.w.root.path) {
		why = "something is mounted in it"
	}
	return fmt.Errorf("%s needs a private copy for each run, because %s, and the copy does not fit: %w; hint: unmount what is mounted there, raise limits.disk, or name a smaller directory with --workspace", Quote(t.w.root.path), why, err)
}

// openMount looks at what is mounted, and says why a run can't see it, or "". What it opens is in the layer.
func (t *Txn) openMount(m mount) (l *innerLayer, why string) {
	l = &innerLayer{mount: m, path: filepath.Join(t.w.root.path, m.path)}
	if slices.Contains(kernelFilesystems, m.fstype) {
		return nil, "it is the host kernel's own (" + m.fstype + ")"
	}
	fd, err := t.w.root.beneath(m.path)
	if err != nil {
		return nil, Quote(err.Error())
	}
	defer unix.Close(fd)
	i, err := statAt(fd, "")
	switch {
	case err != nil:
		return nil, Quote(err.Error())
	case i.kind == regular:
		l.readOnly = true
		return l, ""
	case i.kind != directory:
		return nil, "it is a " + i.what
	case t.holdsState(i):
		return nil, "airlock's own state is in it"
	}
	if err := unix.Faccessat(fd, ".", unix.R_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return nil, "the server may not read it"
	}
	return l, ""
}

// holdsState reports whether airlock's own directory is in another.
func (t *Txn) holdsState(dir inode) bool {
	for path := t.w.state; ; path = filepath.Dir(path) {
		i, err := statAt(unix.AT_FDCWD, path)
		if err == nil && i.dev == dir.dev && i.ino == dir.ino {
			return true
		}
		if path == filepath.Dir(path) {
			return false
		}
	}
}

// prepareInner makes the layer of a mounted directory.
func (t *Txn) prepareInner(ctx context.Context, l *innerLayer, name string, within bool, owner inode) (err error) {
	if l.dir, err = t.layers.mkdir(name, t.w.scratch.mode); err != nil {
		return err
	}
	fd, err := t.w.root.beneath(l.mount.path)
	if err != nil {
		return t.w.root.fail("open", l.mount.path, err)
	}
	defer unix.Close(fd)
	read, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return t.w.root.fail("open", l.mount.path, err)
	}
	lower := &tree{fd: read, path: l.path}
	defer lower.close()
	root, err := statAt(lower.fd, "")
	if err != nil {
		return err
	}
	if l.upper, err = newUpper(l.dir, root, owner); err != nil {
		return err
	}
	hidden := t.w.filter.hidden
	if !within && !t.w.isRefused(l.path) {
		if in := hidden.in(l.mount.path); in != nil {
			m := masks{index: newHiddenIndex(hidden, lower, false)}
			m.index.root.progress = in
			l.mask, _, err = m.take(t.begin.at, l.dir)
		}
		return err
	}
	limit := t.w.copyLimit()
	if limit > 0 && t.copied != nil {
		limit = max(1, limit-t.copied.size)
	}
	if l.copied, err = newPrivateCopy(ctx, lower, l.dir, "copy", limit, func(path string, k kind) bool {
		return hidden.Hides(joinPath(l.mount.path, path), k == directory)
	}); err != nil {
		return fmt.Errorf("what is mounted at %s can't be shown, since it can't be the lower layer of an overlay, and a private copy of it does not fit or can't be made: %w", Quote(l.mount.path), err)
	}
	return nil
}

// moveChanges moves what a run changed in copies to where an overlay would have it.
func (t *Txn) moveChanges(ctx context.Context) error {
	if t.moved {
		return nil
	}
	t.moved = true
	if t.copied == nil {
		return nil
	}
	return t.copied.changes(ctx, t.upper, t.modes)
}

// innerChanges are the changes of the run in what is mounted in the workspace. An error says no more than
// that there can be others.
func (t *Txn) innerChanges(ctx context.Context) []Withheld {
	var all []Withheld
	if t.copied != nil {
		for _, path := range t.copied.withheld {
			all = append(all, Withheld{path, "could not be copied for the run"})
		}
	}
	for _, l := range t.inner {
		if l.readOnly {
			continue
		}
		why := "on another filesystem, mounted at " + quoteItem(l.mount.path)
		var err error
		if l.copied != nil {
			err = l.copied.changes(ctx, l.upper, map[string]uint32{})
		}
		if err == nil {
			err = l.changes(ctx, "", func(path string) {
				all = append(all, Withheld{joinPath(l.mount.path, path), why})
			})
		}
		if err != nil {
			all = append(all, Withheld{l.mount.path, why})
		}
	}
	return all
}

// changes names what an upper layer holds, a directory only if nothing is in it.
func (l *innerLayer) changes(ctx context.Context, path string, found func(path string)) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	i, err := l.upper.stat(path)
	if err != nil {
		return err
	}
	if i.mode&0o500 != 0o500 {
		if err := l.upper.chmod(path, i.mode|0o700); err != nil {
			return err
		}
	}
	names, err := l.upper.list(path)
	if err != nil {
		return err
	}
	if len(names) == 0 && path != "" {
		found(path)
	}
	for _, name := range names {
		below := joinPath(path, name)
		i, err := l.upper.stat(below)
		if err != nil {
			return err
		}
		if i.kind != directory {
			found(below)
		} else if err := l.changes(ctx, below, found); err != nil {
			return err
		}
	}
	return nil
}

// mountNotes says what a person has to know of what was mounted, and of copies. lost are changes that can't
// land.
func (t *Txn) mountNotes(lost []Withheld) []string {
	notes := slices.Clone(t.hidden)
	var shown, readOnly []string
	for _, l := range t.inner {
		if l.readOnly {
			readOnly = append(readOnly, l.mount.path)
		} else {
			shown = append(shown, l.mount.path)
		}
	}
	if t.copied != nil {
		why := "the workspace can't be the lower layer of an overlay on this host"
		if !t.w.isRefused(t.w.root.path) {
			why = "something is mounted in it (" + list(append(shown, readOnly...), conflictsShown, quoteItem) + ")"
		}
		note := fmt.Sprintf("The run worked on a private copy of the workspace, which takes time and space: %s.", why)
		if missed := slices.Sorted(maps.Keys(t.copied.missed)); len(missed) > 0 {
			note += " Not in the copy: " + list(missed, conflictsShown, quoteItem) + "."
		}
		notes = append(notes, note)
	}
	if len(shown) > 0 && len(lost) > 0 {
		notes = append(notes, "Changes never land where another filesystem is mounted ("+list(shown, conflictsShown, quoteItem)+"); what has to be kept belongs elsewhere in the workspace.")
	}
	if len(readOnly) > 0 {
		notes = append(notes, "Read-only to the run, since they are mounted files: "+list(readOnly, conflictsShown, quoteItem)+".")
	}
	return notes
}
