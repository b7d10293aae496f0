package overlay

import (
	"strings"

	"golang.org/x/sys/unix"
)

// setAttributes gives a directory that was made anew what its predecessor had.
func (t *tree) setAttributes(path string, was inode, attrs map[string][]byte) error {
	return t.through(path, func(proc string) error {
		t.point()
		if rootRights() {
			if err := unix.Chown(proc, int(was.uid), int(was.gid)); err != nil {
				return t.fail("chown", path, err)
			}
		} else {
			_ = unix.Chown(proc, -1, int(was.gid)) // a group that we are not in can't be given
		}
		for name, value := range attrs {
			if err := unix.Setxattr(proc, name, value, 0); err != nil {
				return t.fail("set attribute of", path, err)
			}
		}
		if err := unix.Chmod(proc, was.mode); err != nil {
			return t.fail("chmod", path, err)
		}
		return t.fail("set times of", path, unix.UtimesNanoAt(unix.AT_FDCWD, proc, was.mtime.alone(), 0))
	})
}

// attributes are those of a directory that setAttributes can give another: the user's own, and access
// control lists.
func (t *tree) attributes(path string) (attrs map[string][]byte, err error) {
	err = t.through(path, func(proc string) error {
		names, err := xattrNames(proc, unix.Listxattr)
		if err != nil {
			return t.fail("list attributes of", path, err)
		}
		for _, name := range names {
			if !travels(name) {
				continue
			}
			value, err := xattrValue(proc, name, unix.Getxattr)
			if is(err, unix.EACCES) {
				continue
			}
			if err != nil {
				return t.fail("read attribute of", path, err)
			}
			if attrs == nil {
				attrs = map[string][]byte{}
			}
			attrs[name] = value
		}
		return nil
	})
	return attrs, err
}

// travels reports whether an attribute is one that a directory of ours can be given.
func travels(name string) bool {
	return strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_")
}

// layerAttributes are those of a directory of a layer.
func (t *tree) layerAttributes(path string) (attrs map[string][]byte, err error) {
	if path == "" {
		path = "." // through takes a name
	}
	err = t.through(path, func(proc string) error {
		names, err := xattrNames(proc, unix.Listxattr)
		if err != nil {
			return t.fail("list attributes of", path, err)
		}
		attrs = map[string][]byte{}
		for _, name := range names {
			if !travels(name) && (!strings.HasPrefix(name, "trusted.overlay.") || !rootRights()) {
				continue
			}
			if attrs[name], err = xattrValue(proc, name, unix.Getxattr); err != nil {
				return t.fail("read attribute of", path, err)
			}
		}
		return nil
	})
	return attrs, err
}
