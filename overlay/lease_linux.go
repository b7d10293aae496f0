package overlay

import (
	"errors"

	"golang.org/x/sys/unix"
)

// A ctime says nothing of a process that has a file open for writing and will write to it later. So a
// file of the host is replaced or removed under a read lease. The kernel refuses one while the file is
// open for writing anywhere, or mapped so; and as long as it is held, who opens the file for writing,
// or truncates it, waits (/proc/sys/fs/lease-break-time at most) and makes the lease say so.

// errOpen is a conflict: the file is open for writing elsewhere.
var errOpen = errors.New("open for writing elsewhere")

// lease is held on a file, or on nothing where none can be had: on a filesystem that knows none, and
// on a file that is another's or that we may not read. Then what a rename brought out is all that can
// be looked at.
type lease struct{ fd int }

// hold takes a lease on what is at a path, if seen says that it is a file, and returns what it is by then.
func (t *tree) hold(path string, seen inode) (held lease, now inode, err error) {
	held.fd = -1
	if seen.kind == regular {
		if held.fd, err = t.openToHold(path); err == unix.EAGAIN {
			return held, now, errOpen
		}
	}
	if held.fd < 0 {
		now, err = t.stat(path) // which says why
		return held, now, err
	}
	// The signal of a lease that is to be given up, SIGIO, is one that Go's runtime takes and drops.
	refused := setLease(held.fd, unix.F_RDLCK)
	if refused == unix.EAGAIN {
		err = errOpen
	} else {
		now, err = statAt(held.fd, "")
	}
	if err != nil || refused != nil {
		unix.Close(held.fd)
		held.fd = -1
	}
	return held, now, err
}

func (t *tree) openToHold(path string) (fd int, err error) {
	how := unix.OpenHow{
		// Who has a lease of his own is asked to give it up, and not waited for.
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	t.point()
	err = retryIntr(func() error {
		fd, err = unix.Openat2(t.fd, path, &how)
		return err
	})
	return fd, err
}

// wanted reports whether someone waits to write to the file.
func (l lease) wanted() bool {
	if l.fd < 0 {
		return false
	}
	now, err := unix.FcntlInt(uintptr(l.fd), unix.F_GETLEASE, 0)
	return err != nil || now != unix.F_RDLCK
}

// release lets them.
func (l lease) release() {
	if l.fd < 0 {
		return
	}
	// By closing alone the lease would last until a child that is being started executes, too.
	_ = setLease(l.fd, unix.F_UNLCK)
	unix.Close(l.fd)
}

func setLease(fd, how int) error {
	return retryIntr(func() error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, how)
		return err
	})
}
