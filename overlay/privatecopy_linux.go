package overlay

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// privateCopy stands in for an overlay where a directory can't be a lower layer: a run works on a copy, and
// when it is over, what it changed is moved to where an overlay would have it. So a change is judged and
// landed by the same code, whatever kept it. The copy costs what the directory holds.
//
// What a run changed shows in the ctimes of the copy, which nobody can set: the copy is whole at a moment
// of its filesystem's clock, and whatever has an earlier ctime is as it was copied.
type privateCopy struct {
	tree   *tree
	whole  stamp
	size   int64                             // what it took on the disk when it was whole, in bytes
	names  map[string]map[string]copiedEntry // by directory, what was copied into it
	missed map[string]bool                   // what could not be copied
	// withheld are paths that could not be copied, and that the run made something of.
	withheld []string
}

// copiedEntry is an entry of a copy as it was made. A number is given again once its inode is gone; the time
// of its birth is not, where the filesystem keeps it.
type copiedEntry struct {
	kind kind
	mode uint32
	ino  uint64
	born stamp
}

// newPrivateCopy copies what is in from to a new directory of dir.
func newPrivateCopy(ctx context.Context, from, dir *tree, name string, limit int64, skip func(string, kind) bool) (p *privateCopy, err error) {
	root, err := statAt(from.fd, "")
	if err != nil {
		return nil, err
	}
	p = &privateCopy{names: map[string]map[string]copiedEntry{"": {}}, missed: map[string]bool{}}
	if p.tree, err = dir.mkdir(name, 0o700); err != nil {
		return nil, err
	}
	c := copier{
		ctx: ctx, from: from, to: p.tree, limit: limit, skip: skip,
		unread: func(path string) { p.missed[path] = true },
		copied: func(path string, made inode, born stamp) {
			if p.names[parentPath(path)] == nil {
				p.names[parentPath(path)] = map[string]copiedEntry{}
			}
			p.names[parentPath(path)][baseName(path)] = copiedEntry{made.kind, made.mode, made.ino, born}
		},
	}
	if err = c.tree("", ""); err == nil {
		err = c.attributes("", "", root)
	}
	var whole marker
	if err == nil {
		whole, err = takeMarker(ctx, dir)
	}
	if err != nil {
		p.tree.close()
		return nil, err
	}
	p.whole = whole.at
	p.size, err = layerUsage(ctx, p.tree, nil, nil)
	return p, err
}

// changes moves what the run changed to upper, as an overlay would have put it there. modes takes the
// modes of directories that could not be read otherwise, by their paths. Nothing runs any more.
func (p *privateCopy) changes(ctx context.Context, upper *tree, modes map[string]uint32) error {
	u := &uncopying{p: p, ctx: ctx, upper: upper, modes: modes}
	root, err := statAt(p.tree.fd, "")
	if err != nil {
		return err
	}
	if err := u.dir("", root); err != nil {
		return err
	}
	mode, changed := modes[""]
	if !changed {
		mode = root.mode
	}
	if mode&0o500 != 0o500 {
		modes[""] = mode
	}
	return upper.fail("chmod", "", unix.Fchmod(upper.fd, mode|0o500))
}

// uncopying is one walk through a copy after a run.
type uncopying struct {
	p     *privateCopy
	ctx   context.Context
	upper *tree
	modes map[string]uint32
}

// dir moves what was changed in a directory that is the one that was copied.
func (u *uncopying) dir(path string, now inode) error {
	if err := context.Cause(u.ctx); err != nil {
		return err
	}
	tree := u.p.tree
	if now.mode&0o700 != 0o700 {
		if _, known := u.modes[path]; !known {
			u.modes[path] = now.mode
		}
		if err := tree.chmod(path, now.mode|0o700); err != nil {
			return err
		}
	}
	names, err := tree.list(path)
	if err != nil {
		return err
	}
	entries := make([]inode, len(names))
	births := make([]stamp, len(names))
	err = tree.at(path, func(fd int) (err error) {
		for i, name := range names {
			if entries[i], err = statAt(fd, name); err != nil {
				return err
			}
			births[i] = bornAt(fd, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	was := u.p.names[path]
	for i, name := range names {
		if err := u.entry(joinPath(path, name), was[name], entries[i], births[i]); err != nil {
			return err
		}
	}
	for name := range was {
		if _, found := slices.BinarySearch(names, name); !found {
			if err := u.whiteout(joinPath(path, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *uncopying) entry(path string, was copiedEntry, now inode, born stamp) error {
	same := was.kind == now.kind && was.ino == now.ino && was.born == born
	switch {
	case u.p.missed[path] && (!same || now.kind != directory || !now.ctime.before(u.p.whole)):
		u.p.withheld = append(u.p.withheld, path)
		return nil
	case same && now.kind == directory:
		mode, known := u.modes[path]
		if !known {
			mode = now.mode
		}
		if mode != was.mode {
			if err := u.directory(path, mode); err != nil {
				return err
			}
		}
		return u.dir(path, now)
	case same && now.ctime.before(u.p.whole):
		return nil
	}
	if err := u.above(path); err != nil {
		return err
	}
	if now.kind == directory && now.mode&0o700 != 0o700 {
		u.modes[path] = now.mode // a directory that moves is written, too: its ".." changes
		if err := u.p.tree.chmod(path, now.mode|0o700); err != nil {
			return err
		}
	}
	if err := move(u.p.tree, path, u.upper, path, unix.RENAME_NOREPLACE); err != nil {
		return err
	}
	switch {
	case same && now.kind == regular:
		return u.mark(path, "user.overlay.origin", "")
	case now.kind == directory && was.kind != absent:
		return u.mark(path, "user.overlay.opaque", "y")
	}
	return nil
}

// above makes the directories that lead to a path, as copies of those that the workspace has.
func (u *uncopying) above(path string) error {
	parent := parentPath(path)
	if parent == "" {
		return nil
	}
	if i, err := u.upper.stat(parent); err != nil || i.kind != absent {
		return err
	}
	now, err := u.p.tree.stat(parent)
	if err != nil {
		return err
	}
	mode, known := u.modes[parent]
	if !known {
		mode = now.mode
	}
	return u.directory(parent, mode)
}

// directory makes a directory of the layer that both have.
func (u *uncopying) directory(path string, mode uint32) error {
	if err := u.above(path); err != nil {
		return err
	}
	err := u.upper.parent(path, func(fd int, name string) error { return unix.Mkdirat(fd, name, 0o700) })
	if is(err, unix.EEXIST) {
		return nil
	}
	if err != nil {
		return u.upper.fail("mkdir", path, err)
	}
	if err := u.mark(path, "user.overlay.origin", ""); err != nil {
		return err
	}
	if mode&0o700 != 0o700 {
		u.modes[path] = mode
	}
	return u.upper.chmod(path, mode|0o700)
}

// whiteout notes that the run removed something.
func (u *uncopying) whiteout(path string) error {
	if u.p.missed[path] {
		u.p.withheld = append(u.p.withheld, path)
		return nil
	}
	if err := u.above(path); err != nil {
		return err
	}
	return u.upper.parent(path, func(fd int, name string) error {
		return u.upper.fail("make whiteout", path, unix.Mknodat(fd, name, unix.S_IFCHR, 0))
	})
}

// mark sets one of the attributes that overlayfs leaves.
func (u *uncopying) mark(path, name, value string) error {
	fd, err := u.upper.open(path, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	proc := procName(fd)
	err = unix.Setxattr(proc, name, []byte(value), 0)
	if err == unix.EACCES { // user attributes are written with the right to write the file
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if err = unix.Chmod(proc, st.Mode&0o7777|0o600); err == nil {
			err = errors.Join(unix.Setxattr(proc, name, []byte(value), 0), unix.Chmod(proc, st.Mode&0o7777))
		}
	}
	return u.upper.fail("mark", path, err)
}

// bornAt is when the inode of a name was made; zero where the filesystem does not say.
func bornAt(fd int, name string) stamp {
	var st unix.Statx_t
	err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return stamp{}
	}
	return stamp{st.Btime.Sec, st.Btime.Nsec}
}

// LimitCopies bounds the copies that stand in for overlays, in bytes of one transaction; 0, as at first,
// leaves no other bound than free space.
func (w *Workspace) LimitCopies(bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.copies = bytes
}

func (w *Workspace) copyLimit() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.copies
}
