package overlay

// A run that waits for review can wait for long, and over restarts of the host: the moment of its
// beginning says nothing then about a clock that was set meanwhile. So when a run begins to wait,
// everything that its changes were judged by and that nobody had touched is noted with its inode and
// ctime. What is there later, at the same path, with exactly these, was not touched since.

// sightings are what was at the paths of the workspace, and untouched since the run began.
type sightings map[string]sighting

type sighting struct {
	ino   uint64
	ctime stamp
}

// note notes what is at a path, which lies in p or is p, if nobody touched it.
func (c *collector) note(p place, path string, host inode) {
	if c.noted == nil || host.kind == absent || p.swapped || !c.trusted {
		return
	}
	touched := c.touched(path, host)
	if host.kind == directory {
		touched = c.dirTouched(path, host)
	}
	if !touched {
		c.noted[path] = sighting{host.ino, host.ctime}
	}
}

// file reports whether a file or link is the one that was seen. Our own landings can have replaced another
// name of it.
func (s sightings) file(path string, host inode, prints func() []footprint) bool {
	if was, known := s[path]; known && was == (sighting{host.ino, host.ctime}) {
		return true
	}
	return host.links > 1 && s.dir(path, host, prints)
}

// dir reports whether a directory is the one that was seen, and changed by our own landings only.
func (s sightings) dir(path string, host inode, prints func() []footprint) bool {
	was, known := s[path]
	switch {
	case !known || was.ino != host.ino:
		return false
	case was.ctime == host.ctime:
		return true
	}
	c, all := host.ctime, prints()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].ino == host.ino && all[i].after == c {
			if c = all[i].before; c == was.ctime {
				return true
			}
		}
	}
	return false
}

// vanished reports whether a path where nothing is was someone's, or in dispute, when it was seen.
func (c *collector) vanished(path string) bool {
	_, was := c.seen[path]
	return was || c.disputed[path]
}

// keepOf keeps what a landing strips off a file of the layer, for when it is taken back.
func (c *collector) keepOf(e *entry) {
	if e.marks.copied {
		c.copied[e.path] = true
	}
	if _, known := c.modes[e.path]; !known && e.run.mode&setID != 0 {
		c.modes[e.path] = e.run.mode
	}
}
