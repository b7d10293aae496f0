package overlay

import (
	"slices"

	"golang.org/x/sys/unix"
)

// putFile judges a file or link of the layer.
func (c *collector) putFile(p place, e entry) (err error) {
	if e.host.kind == directory {
		return c.replaceDir(p, e)
	}
	conflict := p.swapped || c.touched(e.path, e.host)
	if e.host.kind == e.run.kind {
		same, err := c.compare(e, conflict)
		if err != nil {
			return err
		}
		if same == unchanged || conflict && same == sameOutcome {
			if err := c.noteUnchanged(e); err != nil {
				return err
			}
			if !conflict {
				c.mayRelink(p, e)
			}
			return nil
		}
	}
	fixed := c.filter.fixed(e.path, e.host)
	if fixed && e.run.kind == e.host.kind && e.run.size == e.host.size {
		return nil // git sets the times of objects that it would write again
	}
	if fixed {
		c.withhold(e.path, whyProtected)
		return nil
	}
	if why, err := c.heldBack(p, e); err != nil || why != "" {
		c.withhold(e.path, why)
		return err
	}
	ch := c.put(p, e)
	ch.host, ch.conflict = e.host, conflict
	if ch.acl, err = c.inherited(e); err != nil {
		return err
	}
	if e.host.kind == absent {
		ch.added = []string{e.path}
		if c.seen != nil {
			ch.conflict = ch.conflict || c.vanished(e.path)
		} else {
			was, perhaps := c.prints.removed(e.path, c.begin)
			ch.conflict = ch.conflict || was
			ch.maybeVanished = e.marks.copied && !p.opaque && (perhaps || c.dirTouched(p.path, p.host))
		}
	} else {
		ch.modified = []string{e.path}
	}
	c.add(ch, e)
	return nil
}

// put is the change that brings a file or link in.
func (c *collector) put(p place, e entry) change {
	return change{kind: put, path: e.path, run: e.run, unit: p.unit, scrubs: c.scrubs(e), linked: e.linked()}
}

// add notes such a change.
func (c *collector) add(ch change, e entry) {
	c.noteStripped(e)
	if ch.linked && !ch.conflict {
		c.linked[e.run.ino] = true
	}
	c.changes = append(c.changes, ch)
}

// replaceDir judges a file or link that took the place of a directory: both land, or none.
func (c *collector) replaceDir(p place, e entry) error {
	if c.filter.protected(e.path, e.run.kind, p.gits) {
		c.withhold(e.path, whyProtected)
		return nil
	}
	changes, withheld := len(c.changes), len(c.withheld)
	ch := c.put(p, e)
	ch.added = []string{e.path}
	gone := false
	if !c.dirTouched(e.path, e.host) {
		var err error
		if gone, err = c.removed(p, e.path, e.host, true); err != nil {
			return err
		}
	}
	if !gone {
		ch.conflict = c.dirTouched(e.path, e.host) || slices.ContainsFunc(c.changes[changes:], func(ch change) bool { return ch.conflict })
		onlyHidden := !slices.ContainsFunc(c.withheld[withheld:], func(w Withheld) bool { return w.Why != whyHolds })
		c.changes, c.withheld = c.changes[:changes], c.withheld[:withheld]
		if !ch.conflict {
			why := "in the place of protected paths"
			if onlyHidden {
				why = "in the place of hidden paths"
			}
			c.withhold(e.path, why)
			return nil
		}
		ch.host = e.host
	}
	c.add(ch, e)
	return nil
}

// noteUnchanged notes what a copy that does not land has beyond what the workspace's entry has.
func (c *collector) noteUnchanged(e entry) error {
	if e.run.kind == regular {
		e.run.mode &^= e.host.mode & setID
	}
	if slices.ContainsFunc(e.marks.strip, ofSecurity) {
		var has []string
		err := c.host.parent(e.path, func(fd int, name string) (err error) {
			has, err = xattrNames(procName(fd)+"/"+name, unix.Llistxattr)
			return err
		})
		if err != nil && !is(err, unix.ENOENT) {
			return c.host.fail("read attributes of", e.path, err)
		}
		e.marks.strip = slices.DeleteFunc(slices.Clone(e.marks.strip), func(attr string) bool { return slices.Contains(has, attr) })
	}
	c.noteStripped(e)
	return nil
}

// noteStripped notes the rights and attributes that an entry loses when it lands.
func (c *collector) noteStripped(e entry) {
	note := func(why string) { c.stripped = append(c.stripped, Withheld{Path: e.path, Why: why}) }
	if e.run.kind == regular && e.run.mode&unix.S_ISUID != 0 {
		note("setuid bit removed")
	}
	if e.run.kind == regular && e.run.mode&unix.S_ISGID != 0 {
		note("setgid bit removed")
	}
	for _, attr := range e.marks.strip {
		switch {
		case attr == capability:
			note("file capabilities removed")
		case ofSecurity(attr):
			note(attr + " removed")
		}
	}
}
