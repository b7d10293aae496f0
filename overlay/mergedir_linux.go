package overlay

import "slices"

// putDir judges a directory of the layer.
func (c *collector) putDir(p place, e entry) error {
	if e.host.kind != directory && c.filter.protected(e.path, directory, p.gits) {
		c.withhold(e.path, whyProtected)
		return nil
	}
	switch e.host.kind {
	case directory:
		return c.mergeDir(p, e)
	case absent:
		// A copy of a directory is never moved: overlayfs refuses to rename one.
		return c.newDir(p, e, p.swapped || e.marks.copied && !p.opaque || c.vanished(e.path))
	}
	return c.newDir(p, e, p.swapped || c.touched(e.path, e.host) || e.marks.copied)
}

// mergeDir judges a directory that both have.
func (c *collector) mergeDir(p place, e entry) error {
	next := p.below(e.path, e.host)
	next.marks = e.marks
	// overlayfs marks a directory as opaque only where the lower layer had something at its path. One
	// without a mark of either kind was made by the run, and by someone else too: nothing was removed.
	next.opaque = p.opaque || e.marks.opaque
	if swapped := c.swapped(p, e.path, e.host) && !c.base.is(e.path, e.host); swapped && e.marks.copied {
		next.swapped = true
	} else if swapped && next.opaque {
		next.opaque = false
		more, err := c.hostHasMore(e.path)
		if err != nil {
			return err
		}
		if more {
			c.changes = append(c.changes, change{kind: remove, path: e.path, host: e.host, conflict: true, unit: p.unit})
		}
	}
	switch {
	case e.run.mode == e.host.mode || !e.marks.copied && !next.opaque:
	case e.marks.copied && c.shown(e.path, e.run.mode): // the host changed it
	case c.filter.protected(e.path, directory, p.gits), c.filter.shared != nil && !c.filter.shared.own(e.path):
		c.withhold(e.path, whyProtected)
	default:
		c.changes = append(c.changes, change{
			kind: setMode, path: e.path, run: e.run, host: e.host, unit: p.unit, modified: []string{e.path},
			conflict: next.swapped || c.dirTouched(e.path, e.host),
		})
	}
	return c.dir(next)
}

// shown reports whether a mask showed a directory with this mode when the run began.
func (c *collector) shown(path string, mode uint32) bool {
	return slices.ContainsFunc(c.hiding, func(d hidingDir) bool { return d.path == path && d.inode.mode == mode })
}

// hostHasMore reports whether a directory of the workspace has a name that the layer's has not.
func (c *collector) hostHasMore(path string) (bool, error) {
	ours, err := c.upper.list(path)
	if err != nil {
		return false, err
	}
	theirs, err := c.host.list(path)
	return slices.ContainsFunc(theirs, func(name string) bool {
		_, found := slices.BinarySearch(ours, name)
		return !found
	}), err
}
