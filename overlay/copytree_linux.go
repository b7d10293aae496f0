package overlay

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// copier copies trees, or single entries, between two open directories: content, modes, times, attributes,
// links, and, where it may, owners. It crosses into no mount and follows no link. Sockets, FIFOs and
// devices have no copies: those would be other ones.
type copier struct {
	ctx      context.Context
	from, to *tree
	// limit is the most that the copies may take, in bytes; 0 for no other bound than the filesystem.
	limit   int64
	bytes   int64
	entries int
	// linked are the copies of files that have several names.
	linked map[uint64]string
	// copied is told of each copy, if it is not nil; unread of what could not be read, which is left out
	// then. Where unread is nil that is an error.
	copied func(path string, made inode, born stamp)
	unread func(path string)
	// skip says what is left out.
	skip func(path string, k kind) bool
}

// tooLargeError says that a copy would go beyond its limit.
type tooLargeError struct{ limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("takes more than the %d MiB that one run may write (limits.disk)", e.limit>>20)
}

// copyFloor is how much free space copies leave on a filesystem, in bytes, where nobody waits for them to
// be whole.
const copyFloor = 256 << 20

// grown counts what a copy takes.
func (c *copier) grown(n int64) error {
	c.bytes += n
	if c.limit > 0 && c.bytes > c.limit {
		return &tooLargeError{c.limit}
	}
	return nil
}

// tree copies what is in the directory at fromPath into the one at toPath, which is there.
func (c *copier) tree(fromPath, toPath string) error {
	if err := context.Cause(c.ctx); err != nil {
		return err
	}
	names, err := c.from.list(fromPath)
	if c.unread != nil && is(err, unix.EACCES, unix.EPERM) {
		c.unread(fromPath)
		return nil
	}
	if err != nil {
		return err
	}
	sources, err := c.from.inodes(fromPath, names)
	if err != nil {
		return err
	}
	if c.entries += len(names); c.entries&0x3ff == 0 || c.limit > 0 {
		if err := c.room(); err != nil {
			return err
		}
	}
	for i, name := range names {
		if err := c.entry(joinPath(fromPath, name), joinPath(toPath, name), sources[i]); err != nil {
			return err
		}
	}
	return nil
}

// room makes sure that copies don't fill a filesystem.
func (c *copier) room() error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(c.to.fd, &st); err != nil {
		return c.to.fail("statfs", "", err)
	}
	if free := int64(st.Bavail) * st.Frsize; c.limit > 0 && free < min(copyFloor, int64(st.Blocks)*st.Frsize/16) {
		return c.to.fail("copy to", "", unix.ENOSPC)
	}
	return nil
}

// entry copies one entry with all that is in it.
func (c *copier) entry(fromPath, toPath string, source inode) error {
	if c.skip != nil && c.skip(fromPath, source.kind) {
		return nil
	}
	if err := c.grown(inodeCost); err != nil {
		return err
	}
	var err error
	switch {
	case source.mounted:
		err = c.place(toPath, source)
	case source.kind == directory:
		err = c.directory(fromPath, toPath, source)
	case source.kind == regular:
		err = c.file(fromPath, toPath, source)
	case source.kind == symlink:
		err = c.link(fromPath, toPath, source)
	default:
		if c.unread != nil {
			c.unread(fromPath)
		}
		return nil
	}
	if c.unread != nil {
		if is(err, unix.ENOENT, unix.ELOOP, unix.ENOTDIR, unix.EXDEV) {
			if now, e := c.from.stat(fromPath); e == nil && now.kind != source.kind {
				return nil // it went while we came to it
			}
		}
		if is(err, unix.EACCES, unix.EPERM) {
			c.unread(fromPath)
			return nil
		}
	}
	if err != nil || c.copied == nil {
		return err
	}
	return c.to.parent(toPath, func(fd int, name string) error {
		made, err := statAt(fd, name)
		if err == nil && made.kind != absent {
			c.copied(fromPath, made, bornAt(fd, name))
		}
		return err
	})
}

// place makes what something is mounted on.
func (c *copier) place(path string, source inode) error {
	return c.to.parent(path, func(fd int, name string) error {
		if source.kind == directory {
			return c.to.fail("mkdir", path, unix.Mkdirat(fd, name, 0o755))
		}
		return c.to.fail("create", path, unix.Mknodat(fd, name, unix.S_IFREG|0o600, 0))
	})
}

func (c *copier) directory(fromPath, toPath string, source inode) error {
	c.to.point()
	err := c.to.parent(toPath, func(fd int, name string) error { return unix.Mkdirat(fd, name, 0o700) })
	if err != nil {
		return c.to.fail("mkdir", toPath, err)
	}
	if err := c.tree(fromPath, toPath); err != nil {
		return err
	}
	return c.attributes(fromPath, toPath, source)
}

func (c *copier) file(fromPath, toPath string, source inode) error {
	if to, known := c.linked[source.ino]; known {
		return c.to.parent(to, func(ffd int, fname string) error {
			return c.to.parent(toPath, func(tfd int, tname string) error {
				return c.to.fail("link", toPath, unix.Linkat(ffd, fname, tfd, tname, 0))
			})
		})
	}
	links, err := copyFile(c.ctx, c.from, fromPath, c.to, toPath, c.grown)
	if err != nil {
		return err
	}
	source.mode = source.landedMode()
	if err := c.attributes(fromPath, toPath, source); err != nil {
		return err
	}
	if links > 1 {
		if c.linked == nil {
			c.linked = map[uint64]string{}
		}
		c.linked[source.ino] = toPath
	}
	return nil
}

func (c *copier) link(fromPath, toPath string, source inode) error {
	text, err := c.from.readlink(fromPath)
	if err != nil {
		return err
	}
	c.to.point()
	return c.to.parent(toPath, func(fd int, name string) error {
		if err := unix.Symlinkat(text, fd, name); err != nil {
			return c.to.fail("link", toPath, err)
		}
		if rootRights() {
			if err := unix.Fchownat(fd, name, int(source.uid), int(source.gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return c.to.fail("chown", toPath, err)
			}
		}
		return c.to.fail("set times of", toPath, unix.UtimesNanoAt(fd, name, source.mtime.alone(), unix.AT_SYMLINK_NOFOLLOW))
	})
}

// attributes gives a copy what belongs to its inode.
func (c *copier) attributes(fromPath, toPath string, source inode) error {
	attrs, err := c.from.attributes(fromPath)
	if err != nil {
		return err
	}
	return c.to.setAttributes(toPath, source, attrs)
}
