package runcache

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxDepth bounds how deep a tree is walked: each level holds a descriptor.
const maxDepth = 400

// tooDeep is the size of what lies deeper: more than any limit, so that nothing can hide there.
const tooDeep = 1 << 60

// usage is how many bytes of disk a file takes, or a directory with all that is below it: each inode once, and
// something for each, since empty files fill a disk too. Links are not followed.
func usage(ctx context.Context, name string) (int64, error) {
	seen := make(map[uint64]bool) // inodes of several names
	var bytes int64
	w := walker{
		count: func(st *unix.Stat_t) {
			if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
				if seen[st.Ino] {
					return
				}
				seen[st.Ino] = true
			}
			bytes += st.Blocks*512 + 256
		},
		deep: func(int, string) { bytes = tooDeep },
	}
	err := w.walk(ctx, unix.AT_FDCWD, name, 0)
	return min(bytes, tooDeep), err
}

// walker looks at each file of a tree, links not followed. What vanishes meanwhile is passed over.
type walker struct {
	open  bool // make directories accessible first
	count func(*unix.Stat_t)
	deep  func(at int, name string) // what lies deeper than maxDepth; it is not walked
}

func (w walker) walk(ctx context.Context, at int, name string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	w.count(&st)
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	if depth > maxDepth {
		w.deep(at, name)
		return nil
	}
	if w.open {
		makeWritable(at, name)
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) && !w.open {
		// A run may have closed it, to be measured as less than it has: its owner opens it again.
		makeWritable(at, name)
		fd, err = unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil
	case err != nil:
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	for {
		names, _ := dir.Readdirnames(256)
		if len(names) == 0 {
			return nil // at the end, or what can't be read
		}
		for _, child := range names {
			if err := w.walk(ctx, fd, child, depth+1); err != nil {
				return err
			}
		}
	}
}

// makeWritable gives the owner of a directory its rights on it; anything else stays as it is.
func makeWritable(at int, name string) {
	fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	// A chmod by this name is one of what the descriptor holds, whatever is at the path by now.
	_ = os.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
	unix.Close(fd)
}

// removeAll removes a tree, however deep, directories without permissions included, as Go's module cache is
// full of.
func removeAll(name string) error {
	err := os.RemoveAll(name)
	for moved := 1; err != nil && moved > 0; {
		// What lies too deep is moved to the top, which is removed again.
		moved = 0
		top, e := os.Open(name)
		if e != nil {
			return err
		}
		w := walker{open: true, count: func(*unix.Stat_t) {}, deep: func(at int, child string) {
			makeWritable(at, child)
			if unix.Renameat(at, child, int(top.Fd()), "deep-"+filepath.Base(top.Name())+strconv.Itoa(moved)) == nil {
				moved++
			}
		}}
		_ = w.walk(context.Background(), unix.AT_FDCWD, name, 0)
		top.Close()
		if err = os.RemoveAll(name); err == nil {
			return nil
		}
	}
	return err
}
