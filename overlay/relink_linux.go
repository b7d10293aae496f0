package overlay

import (
	"slices"

	"golang.org/x/sys/unix"
)

// A run that links a file of the workspace to a new name makes overlayfs copy it, and both names are of
// the copy. The workspace's own file is unchanged and would stay, so that the two were no longer one: the
// copy takes its place then, which nobody need be told of.

// mayRelink notes an unchanged copy that has other names.
func (c *collector) mayRelink(p place, e entry) {
	if !e.linked() || e.host.links > 1 || c.filter.protected(e.path, regular, p.gits) {
		return
	}
	c.relinks = append(c.relinks, change{
		kind: put, path: e.path, run: e.run, host: e.host, unit: p.unit, scrubs: c.scrubs(e), linked: true,
	})
}

// relink adds the copies of which another name lands.
func (c *collector) relink() {
	if len(c.relinks) == 0 {
		return
	}
	c.changes = append(c.changes, slices.DeleteFunc(c.relinks, func(ch change) bool { return !c.linked[ch.run.ino] })...)
}

// inherited returns the access control list that the entry takes over from the file that it replaces. A
// copy has that already, or the run took it away.
func (c *collector) inherited(e entry) (acl []byte, err error) {
	if e.run.kind != regular || e.host.kind != regular || e.marks.copied || e.marks.acl {
		return nil, nil
	}
	err = c.host.parent(e.path, func(fd int, name string) error {
		acl, err = xattrValue(procName(fd)+"/"+name, accessList, unix.Lgetxattr)
		if is(err, unix.ENOTSUP, unix.ENOENT) {
			return nil
		}
		return c.host.fail("read attribute of", e.path, err)
	})
	return acl, err
}
