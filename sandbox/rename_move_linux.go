package sandbox

import (
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// entry is a name in an open directory.
type entry struct {
	dir  int
	name string // may end with a slash where only the kernel reads it
}

// movingPrefix begins the private name of a directory while it is detached. Names like it never land.
const movingPrefix = ".airlock-move-"

// maxRounds is how often a directory is looked through again because something was put into it meanwhile.
const maxRounds = 16

// mover moves directories by what an overlay allows: renaming files and pure upper directories.
type mover struct {
	calls dirCalls
	// torn says that a move was neither finished nor undone.
	torn bool
	next int // of the private names
}

// dirCalls are the calls by which the mover changes the tree, so that a test can have each of them fail.
type dirCalls struct {
	mkdir  func(e entry) error // with mode 0700
	rename func(from, to entry, flags uint) error
	rmdir  func(e entry) error
}

var realCalls = dirCalls{
	mkdir: func(e entry) error { return unix.Mkdirat(e.dir, e.name, 0o700) },
	rename: func(from, to entry, flags uint) error {
		return unix.Renameat2(from.dir, from.name, to.dir, to.name, flags)
	},
	rmdir: func(e entry) error { return unix.Unlinkat(e.dir, e.name, unix.AT_REMOVEDIR) },
}

// detach makes a directory one that lies in the upper layer alone, with all below it; it can be renamed
// then. Nothing else about it changes but inode numbers. On an error everything is as before, or torn is set.
//
// It is no single step to whoever looks: for a moment the directory is partly, and then wholly, under
// a private name beside its own.
func (m *mover) detach(e entry) error {
	e.name = strings.TrimSuffix(e.name, "/")
	private := entry{dir: e.dir}
	err := error(unix.EEXIST)
	for tries := 0; err == unix.EEXIST && tries < 100; tries++ {
		private.name = movingPrefix + strconv.Itoa(m.next)
		m.next++
		err = m.pour(e, private)
	}
	if err != nil {
		return err
	}
	// The name was taken for a moment by nobody. A run that puts something else there has lost a directory.
	if err = m.calls.rename(private, e, 0); err != nil {
		m.torn = true
		return unix.EIO
	}
	return nil
}

// pour moves a directory to a name that is free, on the same overlay: it makes a new directory, moves
// the content, and removes the old one. On an error it has moved everything back, or torn is set.
func (m *mover) pour(from, to entry) error {
	src, err := openMoving(from)
	if err != nil {
		return err
	}
	defer src.close()
	if err := m.calls.mkdir(to); err != nil {
		return m.undone(err, src.restore())
	}
	dst, err := unix.Openat(to.dir, to.name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return m.undone(err, m.calls.rmdir(to), src.restore())
	}
	defer unix.Close(dst)
	err = src.copyAttributes(dst)
	for round := 0; err == nil && round < maxRounds; round++ {
		if err = m.pourOnce(src, dst, from); err == nil {
			return nil
		}
		if err == unix.ENOTEMPTY && round+1 < maxRounds {
			err = nil // someone has put something in
		}
	}
	return m.undone(err, unix.Fchmod(dst, 0o700), m.moveAll(dst, src.fd), m.calls.rmdir(to), src.restore())
}

// pourOnce moves what is in src now and removes it.
func (m *mover) pourOnce(src *moving, dst int, from entry) error {
	if err := unix.Fchmod(dst, 0o700); err != nil {
		return err
	}
	if err := m.moveAll(src.fd, dst); err != nil {
		return err
	}
	// Before the old one goes: while both are there, all can be undone.
	if err := src.finish(dst); err != nil {
		return err
	}
	return m.calls.rmdir(from)
}

// moveAll moves every entry of a directory, whose owner may write both.
func (m *mover) moveAll(from, to int) error {
	names, err := readNames(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := m.moveEntry(entry{from, name}, entry{to, name}); err != nil {
			return err
		}
	}
	return nil
}

// moveEntry moves a file, which the overlay copies up, or a directory.
func (m *mover) moveEntry(from, to entry) error {
	switch err := m.calls.rename(from, to, unix.RENAME_NOREPLACE); err {
	case unix.EXDEV:
		return m.pour(from, to)
	case unix.EACCES:
		return m.moveClosed(from, to)
	case unix.ENOENT:
		return nil // removed by the run meanwhile
	default:
		return err
	}
}

// moveClosed moves a directory that its owner may not write. To get another parent it must be written,
// as its ".." changes; to be carried along by a directory above it must not, and that is what this is.
func (m *mover) moveClosed(from, to entry) error {
	dir, err := openMoving(from)
	if err != nil {
		return unix.EACCES
	}
	defer dir.close()
	err = m.calls.rename(from, to, unix.RENAME_NOREPLACE)
	if e := dir.restore(); e != nil {
		m.torn = true
		return e
	}
	if err == unix.EXDEV {
		return m.pour(from, to)
	}
	return err
}

// undone returns err, after the steps that take back what was done before it.
func (m *mover) undone(err error, steps ...error) error {
	if errors.Join(steps...) != nil {
		m.torn = true
		return unix.EIO
	}
	return err
}

// isFilled reports whether the entry is a directory that is known not to be empty. It is asked of
// directories that the caller may remove, but perhaps not read.
func (m *mover) isFilled(e entry) bool {
	dir, err := openMoving(e)
	if err != nil {
		return false
	}
	defer dir.close()
	names, err := readNames(dir.fd)
	if dir.closed() && dir.restore() != nil {
		m.torn = true
	}
	return err == nil && len(names) > 0
}

// readNames lists a directory from its beginning.
func readNames(fd int) ([]string, error) {
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return nil, err
	}
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n == 0 {
			return names, err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}
