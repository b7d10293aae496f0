package overlay

import (
	"strings"

	"golang.org/x/sys/unix"
)

// scrub is what must be taken off an entry of the layer before it lands: attributes of overlayfs, which a
// later mount would obey; capabilities and other attributes of security modules; set-ID bits; and the mode
// that we gave it to read it. The walk notes it, so that what needs none is not touched again.
type scrub struct {
	path  string
	now   uint32 // its mode
	mode  uint32 // what it shall have
	strip []string
}

// scrubs returns what an entry needs; it is one or none.
func (c *collector) scrubs(e entry) []scrub {
	if e.run.kind != regular && e.run.kind != directory && e.run.kind != symlink {
		return nil
	}
	s := scrub{path: e.path, now: e.run.mode, mode: e.run.landedMode(), strip: e.marks.strip}
	if e.run.kind == symlink {
		s.mode = s.now // a link's can't be set
	} else if _, opened := c.modes[e.path]; opened {
		s.now = 0o10000 // none that it can have: set it in any case
	}
	if s.now == s.mode && len(s.strip) == 0 {
		return nil
	}
	return []scrub{s}
}

// scrub carries it out.
func (t *tree) scrub(s scrub) error {
	return t.parent(s.path, func(fd int, name string) error {
		// A name below a descriptor has no other link to follow. The tree is ours alone, and this is none.
		path := procName(fd) + "/" + name
		for _, attr := range s.strip {
			t.point()
			err := unix.Lremovexattr(path, attr)
			if err == unix.EACCES && strings.HasPrefix(attr, "user.") {
				// Attributes of the user class are written with the right to write the file.
				if err := unix.Fchmodat(fd, name, s.mode&0o777|0o600, 0); err != nil {
					return t.fail("chmod", s.path, err)
				}
				s.now = 0o10000
				err = unix.Lremovexattr(path, attr)
			}
			if err == unix.EPERM && ofSecurity(attr) {
				continue // who may not remove one may not set one either: it is the kernel's, not the run's
			}
			if err != nil && err != unix.ENODATA {
				return t.fail("remove attributes of", s.path, err)
			}
		}
		if s.now == s.mode {
			return nil
		}
		t.point()
		return t.fail("chmod", s.path, unix.Fchmodat(fd, name, s.mode, 0))
	})
}
