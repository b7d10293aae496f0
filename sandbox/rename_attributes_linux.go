package sandbox

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// moving is a directory whose content is being moved out, and what it was before.
type moving struct {
	fd   int
	stat unix.Stat_t
}

// openMoving opens a directory so that its content can be listed and moved, whatever its mode, if it is
// the user's own.
func openMoving(e entry) (*moving, error) {
	// Named without being opened first: opening asks for the rights that the directory may lack.
	path, err := unix.Openat(e.dir, strings.TrimSuffix(e.name, "/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(path)
	d := new(moving)
	if err := unix.Fstat(path, &d.stat); err != nil {
		return nil, err
	}
	if d.closed() {
		// If that fails it is another user's directory; its group may have the rights.
		_ = unix.Chmod(ownFD(path), d.mode()|unix.S_IRWXU)
	}
	if d.fd, err = unix.Openat(path, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		if d.closed() {
			_ = unix.Chmod(ownFD(path), d.mode())
		}
		return nil, err
	}
	return d, nil
}

// closed reports whether the directory lacked a right of its owner.
func (d *moving) closed() bool { return d.stat.Mode&unix.S_IRWXU != unix.S_IRWXU }

func (d *moving) close() { unix.Close(d.fd) }

func (d *moving) mode() uint32 { return d.stat.Mode & 0o7777 }

// restore gives the directory back its mode and times. Only the owner can, and only the owner's were changed.
func (d *moving) restore() error {
	if d.stat.Uid != uint32(os.Geteuid()) {
		return nil
	}
	return d.finish(d.fd)
}

// finish gives mode and times to the directory fd. They come last: both would change, or forbid, what is
// still to be done.
func (d *moving) finish(fd int) error {
	if err := unix.Fchmod(fd, d.mode()); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, ownFD(fd), []unix.Timespec{d.stat.Atim, d.stat.Mtim}, 0)
}

// copyAttributes gives the directory fd the group, extended attributes and access lists, and takes away
// those that it inherited from where it was made.
func (d *moving) copyAttributes(fd int) error {
	// A group or owner that this user can't give is not kept; what lands is owned as its neighbours are.
	if err := unix.Fchown(fd, -1, int(d.stat.Gid)); err != nil && err != unix.EPERM && err != unix.EINVAL {
		return err
	}
	want, err := attributeNames(d.fd)
	if err != nil {
		return err
	}
	have, err := attributeNames(fd)
	if err != nil {
		return err
	}
	for _, name := range have {
		if !slices.Contains(want, name) {
			if err := unix.Fremovexattr(fd, name); err != nil {
				return err
			}
		}
	}
	buf := make([]byte, 64<<10) // XATTR_SIZE_MAX
	for _, name := range want {
		n, err := unix.Fgetxattr(d.fd, name, buf)
		if err != nil {
			return err
		}
		if err := unix.Fsetxattr(fd, name, buf[:n], 0); err != nil {
			return err
		}
	}
	return nil
}

// attributeNames lists the extended attributes that a user sets: user.* and access lists.
func attributeNames(fd int) ([]string, error) {
	buf := make([]byte, 64<<10) // XATTR_LIST_MAX
	n, err := unix.Flistxattr(fd, buf)
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_") {
			names = append(names, name)
		}
	}
	return names, nil
}

// ownFD names an open file of this process where only a path is taken.
func ownFD(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
