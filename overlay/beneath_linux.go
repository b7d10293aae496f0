package overlay

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// tree is a directory that is held open. Everything below it is reached through the descriptor,
// beneath it, without following a link and without crossing into another mount, whatever someone
// does to the names meanwhile.
type tree struct {
	fd   int
	path string // for messages, and for what is done by plain paths elsewhere
	hook func() // see Workspace.point
	// trail is what a view for a walk holds open; nil otherwise.
	trail *trail
}

// openTree opens the directory at a path of ours. Its last component is not followed.
func openTree(path string) (*tree, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &tree{fd: fd, path: path}, nil
}

// sub opens a directory of the tree as a tree of its own.
func (t *tree) sub(path string) (*tree, error) {
	fd, err := t.open(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &tree{fd: fd, path: filepath.Join(t.path, path), hook: t.hook}, nil
}

func (t *tree) close() error { return unix.Close(t.fd) }

// open opens a path of the tree. Errors name the path.
func (t *tree) open(path string, flags int) (int, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	from, name := t.from(path)
	if name == "" {
		name = "."
	}
	t.point()
	fd, err := retry(func() (int, error) { return unix.Openat2(from, name, &how) })
	if err != nil {
		return -1, t.fail("open", path, err)
	}
	return fd, nil
}

// retry repeats what a signal, or a rename beneath openat2, interrupted.
func retry[T any](f func() (T, error)) (T, error) {
	for {
		v, err := f()
		if err != unix.EINTR && err != unix.EAGAIN {
			return v, err
		}
	}
}

// retryIntr is retry where EAGAIN is an answer.
func retryIntr(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// fail makes the error of an operation on a path of the tree; nil stays nil.
func (t *tree) fail(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: filepath.Join(t.path, path), Err: err}
}

// parent opens the directory that holds path, only to name things in it, and calls f with it.
func (t *tree) parent(path string, f func(fd int, name string) error) error {
	return t.at(parentPath(path), func(fd int) error { return f(fd, baseName(path)) })
}

// at opens the directory at path, only to name things in it, and calls f with it.
func (t *tree) at(path string, f func(fd int) error) error {
	if path == "" {
		return f(t.fd)
	}
	if t.trail != nil && t.trail.inUse == 0 {
		fd, err := t.enter(path)
		if err != nil {
			return err
		}
		t.trail.inUse++
		defer func() { t.trail.inUse-- }()
		return f(fd)
	}
	fd, err := t.open(path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}

// stat says what is at path. Nothing being there is no error.
func (t *tree) stat(path string) (inode, error) {
	if path == "" {
		return statAt(t.fd, "")
	}
	var i inode
	err := t.parent(path, func(fd int, name string) (err error) {
		i, err = statAt(fd, name)
		return err
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return inode{}, nil
	}
	return i, err
}

// inodes says what each of the names in the directory at path is.
func (t *tree) inodes(path string, names []string) ([]inode, error) {
	all := make([]inode, len(names))
	err := t.at(path, func(fd int) (err error) {
		for i, name := range names {
			if all[i], err = statAt(fd, name); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// list returns the names in the directory at path, sorted.
func (t *tree) list(path string) ([]string, error) {
	fd, err := t.open(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), filepath.Join(t.path, path))
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// empty reports whether the directory at path has no entries.
func (t *tree) empty(path string) (bool, error) {
	fd, err := t.open(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false, err
	}
	f := os.NewFile(uintptr(fd), filepath.Join(t.path, path))
	defer f.Close()
	_, err = f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}

// file opens a regular file for reading. A FIFO that took its place meanwhile does not block.
func (t *tree) file(path string) (*os.File, error) {
	fd, err := t.open(path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(t.path, path)), nil
}

// readlink returns the text of the link at path.
func (t *tree) readlink(path string) (text string, err error) {
	err = t.parent(path, func(fd int, name string) error {
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(fd, name, buf)
		if err != nil {
			return t.fail("readlink", path, err)
		}
		text = string(buf[:n])
		return nil
	})
	return text, err
}

// chmod sets the mode of what is at path, which must not be a link.
func (t *tree) chmod(path string, mode uint32) error {
	return t.through(path, func(proc string) error {
		t.point()
		return t.fail("chmod", path, unix.Chmod(proc, mode))
	})
}

// through calls f with a name of the inode at path that later renames do not change, whatever the
// inode's mode is. It refuses links, which such a name would follow.
func (t *tree) through(path string, f func(proc string) error) error {
	fd, err := t.open(path, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return t.fail("stat", path, err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return t.fail("open", path, unix.ELOOP)
	}
	return f(procName(fd))
}

// move renames from a path of one tree to a path of another. The flags are those of renameat2;
// there is no form that replaces something silently.
func move(from *tree, fromPath string, to *tree, toPath string, flags uint) error {
	return from.parent(fromPath, func(ffd int, fname string) error {
		return to.parent(toPath, func(tfd int, tname string) error {
			from.point()
			_, err := retry(func() (struct{}, error) {
				return struct{}{}, unix.Renameat2(ffd, fname, tfd, tname, flags)
			})
			if err != nil {
				return &os.LinkError{
					Op: "rename", Err: err,
					Old: filepath.Join(from.path, fromPath), New: filepath.Join(to.path, toPath),
				}
			}
			return nil
		})
	})
}

// statAt says what name is in the directory fd; "" is the directory itself.
func statAt(fd int, name string) (inode, error) {
	const mask = unix.STATX_BASIC_STATS | unix.STATX_MNT_ID
	var st unix.Statx_t
	_, err := retry(func() (struct{}, error) {
		return struct{}{}, unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH, mask, &st)
	})
	if err == unix.ENOENT {
		return inode{}, nil
	}
	if err != nil {
		return inode{}, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	i := inode{
		mode: uint32(st.Mode) & 0o7777, uid: st.Uid, gid: st.Gid,
		dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino, size: st.Size,
		mtime: stamp{st.Mtime.Sec, st.Mtime.Nsec}, ctime: stamp{st.Ctime.Sec, st.Ctime.Nsec},
		mounted: name != "" && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0,
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		i.links = st.Nlink
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		i.kind = regular
	case unix.S_IFDIR:
		i.kind = directory
	case unix.S_IFLNK:
		i.kind = symlink
	case unix.S_IFIFO:
		i.kind, i.what = special, "FIFO"
	case unix.S_IFSOCK:
		i.kind, i.what = special, "socket"
	case unix.S_IFCHR:
		i.kind, i.what = special, "device"
		i.whiteout = st.Rdev_major == 0 && st.Rdev_minor == 0
	default:
		i.kind, i.what = special, "device"
	}
	return i, nil
}

// is reports whether the error is one of the errnos.
func is(err error, errnos ...unix.Errno) bool {
	return slices.ContainsFunc(errnos, func(e unix.Errno) bool { return errors.Is(err, e) })
}

// procName is a path to an open descriptor, for calls that take no descriptor.
func procName(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// rootRights reports whether the server is root: modes don't bind it, and it can give files away.
func rootRights() bool { return os.Geteuid() == 0 }

// alone is what utimensat takes to set an mtime, and no atime.
func (s stamp) alone() []unix.Timespec {
	return []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: s.sec, Nsec: int64(s.nsec)}}
}

// mkdir makes and opens a directory with exactly this mode.
func (t *tree) mkdir(name string, mode uint32) (*tree, error) {
	if err := unix.Mkdirat(t.fd, name, 0o700); err != nil {
		return nil, t.fail("mkdir", name, err)
	}
	return t.opened(name, mode)
}

// ensure is mkdir for a directory that may be there.
func (t *tree) ensure(name string, mode uint32) (*tree, error) {
	if err := unix.Mkdirat(t.fd, name, 0o700); err != nil && err != unix.EEXIST {
		return nil, t.fail("mkdir", name, err)
	}
	return t.opened(name, mode)
}

// opened opens a directory and gives it a mode.
func (t *tree) opened(name string, mode uint32) (*tree, error) {
	sub, err := t.sub(name)
	if err != nil {
		return nil, err
	}
	if err := unix.Fchmod(sub.fd, mode); err != nil {
		sub.close()
		return nil, t.fail("chmod", name, err)
	}
	return sub, nil
}
