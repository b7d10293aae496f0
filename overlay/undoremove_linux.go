package overlay

import "slices"

// remove judges something that the landing put where nothing was, and reports whether the path will
// be free.
func (u *undoing) remove(s step) (gone bool, err error) {
	now, seen, err := u.stat(s.path)
	if err != nil || now.kind == absent {
		return true, err
	}
	if s.isObject() {
		return false, nil // someone may have made a ref to it since; git gc removes what nobody needs
	}
	if now.kind == directory && s.landed.kind == directory && seen.ino == s.landed.ino && !now.mounted && u.since != nil {
		return u.removeDir(s.path, s.unit, now, s.landed.ctime.before(u.prints.without(seen)))
	}
	return u.removeOne(s.path, s.unit, now, !u.unchanged(s, seen)), nil
}

// otherName reports whether a file has a name that the landing put by itself, which moved its ctime last.
func (u *undoing) otherName(now inode) bool {
	return now.links > 1 && slices.ContainsFunc(u.steps, func(s step) bool {
		return s.landed.kind == regular && s.landed.ino == now.ino && u.unchanged(s, now)
	})
}

func (u *undoing) removeOne(path, unit string, now inode, conflict bool) (gone bool) {
	u.c.changes = append(u.c.changes, change{
		kind: remove, path: path, host: now, conflict: conflict, unit: unit, deleted: []string{path},
	})
	return !conflict
}

// removeDir judges a directory that the landing put, each entry for itself. touched says whether someone else
// changed the names in it. If so, a directory in it that was touched itself may be one that they moved there, with files
// whose ctimes are old: it stays (see collector.swapped).
func (u *undoing) removeDir(path, unit string, dir inode, touched bool) (gone bool, err error) {
	names, err := u.w.root.list(path)
	if err != nil {
		return false, err
	}
	gone = true
	for _, name := range names {
		below := joinPath(path, name)
		now, seen, err := u.stat(below)
		if err != nil {
			return false, err
		}
		one := now.kind == absent
		switch {
		case one:
		case now.kind == directory && !now.mounted && !reserved(name):
			touchedToo := !u.prints.without(seen).before(*u.since)
			if touched && touchedToo {
				one = u.removeOne(below, unit, now, true)
			} else if one, err = u.removeDir(below, unit, now, touchedToo); err != nil {
				return false, err
			}
		default:
			changed := !seen.ctime.before(*u.since) && !u.otherName(seen)
			one = u.removeOne(below, unit, now, now.mounted || now.kind == special || reserved(name) || changed)
		}
		gone = gone && one
	}
	if !gone {
		return false, nil
	}
	ch := change{kind: remove, path: path, host: dir, unit: unit}
	if len(names) == 0 {
		ch.deleted = []string{path}
	}
	u.c.changes = append(u.c.changes, ch)
	return true, nil
}
