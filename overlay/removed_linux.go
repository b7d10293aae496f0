package overlay

import "slices"

// removed judges something in the workspace that the run removed: every entry for itself, since a
// run that removes a directory has not seen what someone wrote into it meanwhile. It reports whether
// the path will be gone. inside is set where path lies in a directory that was removed.
func (c *collector) removed(p place, path string, host inode, inside bool) (gone bool, err error) {
	c.note(p, path, host)
	isDir := host.kind == directory
	ignored := c.filter.ignored(path, isDir)
	switch {
	case host.kind == absent:
		return true, nil
	case ignored && !inside:
		return false, nil
	case c.filter.hides(path, isDir):
		if inside {
			c.withhold(parentPath(path), whyHolds)
		}
		return false, nil
	case reserved(baseName(path)):
		c.withhold(path, whyReserved)
		return false, nil
	case c.filter.fixed(path, host):
		return false, nil // and no word of it: gc and a push do this all the time
	case c.filter.protected(path, host.kind, p.gits):
		c.withhold(path, whyProtected)
		return false, nil
	case host.mounted:
		c.withhold(path, whyMounted)
		return false, nil
	case isDir:
		return c.removedDir(p, path, host, inside)
	}
	ch := change{kind: remove, path: path, host: host, unit: p.unit}
	if p.swapped || c.touched(path, host) {
		ch.conflict = true
	} else if !ignored {
		ch.deleted = []string{path}
	}
	c.changes = append(c.changes, ch)
	return !ch.conflict, nil
}

func (c *collector) removedDir(p place, path string, host inode, inside bool) (gone bool, err error) {
	if err := c.alive(); err != nil {
		return false, err
	}
	if p.swapped || c.swapped(p, path, host) {
		c.changes = append(c.changes, change{kind: remove, path: path, host: host, conflict: true, unit: p.unit})
		return false, nil
	}
	names, err := c.host.list(path)
	if err != nil {
		return false, err
	}
	below, err := c.host.inodes(path, names)
	if err != nil {
		return false, err
	}
	next := p.below(path, host)
	if err := c.lookAgain(&next); err != nil {
		return false, err
	}
	if next.swapped {
		c.changes = append(c.changes, change{kind: remove, path: path, host: host, conflict: true, unit: p.unit})
		return false, nil
	}
	git := isGitDir(baseName(path), func(name string) bool { return slices.Contains(names, name) })
	if git {
		next.enterGit(false)
	}
	changes, withheld := len(c.changes), len(c.withheld)
	gone = true
	ignored := len(names) > 0 // all that is in it, and so in effect the directory
	for i, name := range names {
		ignored = ignored && c.filter.ignored(joinPath(path, name), below[i].kind == directory)
	}
	if ignored && !inside {
		return false, nil
	}
	for i, name := range names {
		g, err := c.removed(next, joinPath(path, name), below[i], true)
		if err != nil {
			return false, err
		}
		gone = gone && g
	}
	if git && len(c.withheld) > withheld {
		// Hooks and configuration alone are no repository. It goes as a whole, or stays.
		c.changes, c.withheld = c.changes[:changes], c.withheld[:withheld]
		c.withhold(path, whyProtected)
		return false, nil
	}
	if !gone {
		return false, nil
	}
	ch := change{kind: remove, path: path, host: host, unit: next.unit}
	if !ignored && !slices.ContainsFunc(c.changes[changes:], func(ch change) bool { return len(ch.deleted) > 0 }) {
		ch.deleted = []string{path}
	}
	c.changes = append(c.changes, ch)
	return true, nil
}
