package overlay

import "slices"

// restored is something that comes back.
type restored struct {
	step
	below []*restored // in a directory
}

// restore judges something that the landing removed.
func (u *undoing) restore(r *restored) error {
	now, err := u.w.root.stat(r.path)
	if err != nil {
		return err
	}
	if u.gone[r.path] {
		now = inode{}
	}
	if r.kind == removeDir && now.kind == directory {
		for _, b := range r.below {
			if err := u.restore(b); err != nil {
				return err
			}
		}
		return nil
	}
	ch := change{kind: put, path: r.path, host: now, unit: r.unit, added: r.leaves(nil), conflict: now.kind != absent}
	if !ch.conflict && parentPath(r.path) != "" {
		parent, err := u.w.root.stat(parentPath(r.path))
		if err != nil {
			return err
		}
		ch.conflict = parent.kind != directory
	}
	if !ch.conflict {
		if ch.conflict, err = u.obeyedAnew(r.path); err != nil {
			return err
		}
	}
	u.put(ch, r)
	return nil
}

// obeyedAnew reports whether bringing path back would make a directory a git directory again in which something
// that git obeys has changed since: it could land because git did not obey it then.
func (u *undoing) obeyedAnew(path string) (bool, error) {
	dir := parentPath(path)
	if !slices.Contains(gitEssential, baseName(path)) || isDotGit(baseName(dir)) {
		return false, nil
	}
	for _, name := range gitDangerous {
		below := joinPath(dir, name)
		now, err := u.w.root.stat(below)
		if err != nil {
			return false, err
		}
		// What the landing changed itself was judged then, and is taken back with this.
		ours := slices.ContainsFunc(u.steps, func(s step) bool { return within(s.path, below) })
		if now.kind != absent && !ours && !now.ctime.before(u.began) {
			return true, nil
		}
	}
	return false, nil
}

// leaves are the paths that a report names: files, and directories with nothing in them.
func (r *restored) leaves(paths []string) []string {
	if len(r.below) == 0 {
		return append(paths, r.path)
	}
	for _, b := range r.below {
		paths = b.leaves(paths)
	}
	return paths
}

// putBack judges something that the landing replaced.
func (u *undoing) putBack(s step) error {
	now, seen, err := u.stat(s.path)
	if err != nil {
		return err
	}
	ch := change{kind: put, path: s.path, host: now, unit: s.unit}
	switch {
	case s.landed.kind != directory:
		ch.conflict = !u.unchanged(s, seen)
		ch.modified = []string{s.path}
	case u.gone[s.path]:
		ch.host = inode{}
		ch.added = []string{s.path}
	default:
		ch.conflict = true
	}
	u.put(ch, &restored{step: s})
	return nil
}

func (u *undoing) put(ch change, r *restored) {
	u.sources[ch.path] = r
	u.c.changes = append(u.c.changes, ch)
}
