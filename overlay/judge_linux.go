package overlay

// touched reports whether someone changed a file or link of the workspace since the run began. A
// directory's ctime says less: see dirTouched. A landing that replaced or removed another name of the
// same file moved its ctime, too, and does not count.
func (c *collector) touched(path string, host inode) bool {
	if host.kind == absent {
		return false
	}
	if c.seen != nil {
		return !c.seen.file(path, host, c.prints.moved)
	}
	if c.trusted && host.links > 1 {
		return !c.withoutUs(host).before(c.begin)
	}
	return !c.trusted || !host.ctime.before(c.begin)
}

// withoutUs returns the ctime that an inode would have if our landings had not moved it.
func (c *collector) withoutUs(host inode) stamp {
	if host.ctime.before(c.begin) {
		return host.ctime
	}
	return c.prints.without(host)
}

// dirTouched reports whether someone changed a directory of the workspace itself, or the names in it,
// since the run began. Landings of other runs don't count: each name that they changed is judged by
// itself.
func (c *collector) dirTouched(path string, host inode) bool {
	if !c.trusted {
		return true
	}
	if c.seen != nil {
		return !c.seen.dir(path, host, c.prints.moved)
	}
	return !c.withoutUs(host).before(c.begin)
}

// swapped reports whether a directory of the workspace may have been put in the place of another
// since the run began. The files in it then have ctimes that say nothing. A rename moves the ctime
// of the directory and of its parent; names that came or went in both look the same, and nothing
// tells them apart. Where the files are known that were there, each is judged by itself.
func (c *collector) swapped(parent place, path string, dir inode) bool {
	return c.trusted && c.seen == nil && c.dirTouched(path, dir) && c.dirTouched(parent.path, parent.host)
}

// lookAgain looks at a directory of the workspace once what is in it was looked at. A directory in it that was
// swapped for another before that has moved this one's ctime by now; and if this one is another by now, what was
// looked at may be the other's.
func (c *collector) lookAgain(p *place) error {
	now, err := c.host.stat(p.path)
	if err != nil {
		return err
	}
	if now.kind != directory || now.ino != p.host.ino || now.dev != p.host.dev {
		p.swapped = true
		return nil
	}
	p.host = now
	return nil
}

// resolveVanished decides about files that the layer holds as copies of something that the workspace
// does not have, where someone changed the directory: if the run removed or replaced a file of just
// this size and time, it renamed it; otherwise someone else removed it, which is a conflict.
func (c *collector) resolveVanished() {
	type trace struct {
		size  uint64
		mtime stamp
	}
	var sources map[trace]bool
	for i := range c.changes {
		if !c.changes[i].maybeVanished {
			continue
		}
		if sources == nil {
			sources = map[trace]bool{}
			for _, ch := range c.changes {
				if ch.host.kind == regular {
					sources[trace{ch.host.size, ch.host.mtime}] = true
				}
			}
		}
		run := c.changes[i].run
		if !sources[trace{run.size, run.mtime}] {
			c.changes[i].conflict = true
		}
	}
}
