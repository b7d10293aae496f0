package clearing

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Tree removes the file or directory at a path, with everything in it. The directory that it is in must be ours alone. One
// that is not there is no error.
func Tree(path string) error {
	parent, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	defer unix.Close(parent)
	return Beneath(parent, filepath.Base(path))
}

// Beneath removes name, with everything in it, from the directory fd, which must be ours alone.
//
// A run can leave directories of any depth and any mode (overlayfs itself leaves work/work with mode
// 000). So nothing recurses and at most three descriptors are open: whatever directory is found is
// given a usable mode and moved to the top, where it is emptied in its turn.
func Beneath(fd int, name string) error {
	top, err := openOwn(fd, name)
	if err == unix.ENOENT {
		return nil
	}
	if err == unix.ENOTDIR || err == unix.ELOOP {
		return unix.Unlinkat(fd, name, 0)
	}
	if err != nil {
		return &os.PathError{Op: "remove", Path: name, Err: err}
	}
	defer unix.Close(top)
	moved := 0
	for {
		names, err := someNames(top)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			break
		}
		for _, n := range names {
			if err := removeTop(top, n, &moved); err != nil {
				return &os.PathError{Op: "remove", Path: n, Err: err}
			}
		}
	}
	if err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR); err != nil {
		return &os.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

// removeTop removes one entry of top, moving the directories in it to top.
func removeTop(top int, name string, moved *int) error {
	if err := unix.Unlinkat(top, name, 0); err == nil || err == unix.ENOENT {
		return nil
	}
	dir, err := openOwn(top, name)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for {
		names, err := someNames(dir)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return unix.Unlinkat(top, name, unix.AT_REMOVEDIR)
		}
		for _, n := range names {
			if err := unix.Unlinkat(dir, n, 0); err == nil || err == unix.ENOENT {
				continue
			}
			// Moving a directory writes its "..": it has to be writable itself.
			sub, err := openOwn(dir, n)
			if err != nil {
				return err
			}
			unix.Close(sub)
			for {
				*moved++
				err := unix.Renameat2(dir, n, top, fmt.Sprintf("~%d", *moved), unix.RENAME_NOREPLACE)
				if err == nil {
					break
				}
				if err != unix.EEXIST {
					return err
				}
			}
		}
	}
}

// openOwn opens a directory for listing after it was made usable for its owner.
func openOwn(fd int, name string) (int, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	p, err := unix.Openat(fd, name, flags|unix.O_PATH, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(p)
	var st unix.Stat_t
	if err := unix.Fstat(p, &st); err != nil {
		return -1, err
	}
	if st.Mode&0o700 != 0o700 {
		if err := unix.Chmod("/proc/self/fd/"+strconv.Itoa(p), st.Mode&0o7777|0o700); err != nil {
			return -1, err
		}
	}
	return unix.Openat(p, ".", flags|unix.O_RDONLY, 0)
}

// someNames returns the first names of an open directory, from its beginning.
func someNames(fd int) ([]string, error) {
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		return nil, err
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(dup), "directory")
	defer f.Close()
	names, err := f.Readdirnames(4096)
	if len(names) > 0 || err == io.EOF {
		return names, nil
	}
	return nil, err
}
