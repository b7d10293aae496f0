package sandbox

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// placeKind says what a place is to be, if it has to be made.
type placeKind bool

const (
	placeDir  placeKind = true
	placeFile placeKind = false
)

// place opens target in the new root for something to be mounted there. What is missing is made, but
// only on filesystems of our own: a directory made in the workspace would land with the run. Links
// are not followed, since the workspace may hold any.
func (b *builder) place(target string, kind placeKind) (handle, error) {
	if at, err := openPath(target); err == nil {
		return at, nil
	} else if errors.Is(err, unix.ENOENT) {
		// As a rule what is missing is the last component alone.
		if dir, err := openPath(path.Dir(target)); err == nil {
			defer dir.Close()
			fd, err := b.enter(dir.fd, path.Base(target), kind == placeDir)
			if err != nil {
				return handle{}, setupError("make mount point", target, err)
			}
			return handle{fd, target}, nil
		}
	}
	at, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return handle{}, setupError("open", "/", err)
	}
	names := strings.Split(strings.Trim(target, "/"), "/")
	for i, name := range names {
		next, err := b.enter(at, name, kind == placeDir || i < len(names)-1)
		unix.Close(at)
		if err != nil {
			return handle{}, setupError("make mount point", path.Join("/", path.Join(names[:i+1]...)), err)
		}
		at = next
	}
	return handle{at, target}, nil
}

// enter opens one component below the directory at.
func (b *builder) enter(at int, name string, dir bool) (int, error) {
	flags := unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(at, name, flags, 0)
	if errors.Is(err, unix.ENOENT) {
		if own, err := b.own(at); err != nil || !own {
			return -1, errors.Join(err, unix.ENOENT)
		}
		if dir {
			err = unix.Mkdirat(at, name, 0o755)
		} else {
			err = unix.Mknodat(at, name, unix.S_IFREG|0o444, 0)
		}
		if err != nil {
			return -1, err
		}
		return unix.Openat(at, name, flags, 0)
	}
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		unix.Close(fd)
		return -1, unix.ELOOP
	}
	return fd, nil
}

// own is true if the directory lies on the root or the private tmpfs.
func (b *builder) own(at int) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return false, err
	}
	return st.Dev == b.rootDev || st.Dev == b.scratchDev, nil
}

func deviceOf(f handle) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(f.fd, &st)
	return st.Dev, setupError("stat", f.path, err)
}

func isDir(f handle) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstat(f.fd, &st)
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, setupError("stat", f.path, err)
}
