package overlay

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// copyChunk is how much content is copied between two looks at whether to go on, in bytes.
const copyChunk = 16 << 20

// copyFile makes a file with the content of another. Holes stay holes. Where the filesystem can share
// content between files, nothing is copied. grown is told how many bytes were written, and may refuse.
// links is how many names the file has.
func copyFile(ctx context.Context, from *tree, fromPath string, to *tree, toPath string, grown func(int64) error) (links uint64, err error) {
	source, err := from.file(fromPath)
	if err != nil {
		return 0, err
	}
	defer source.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(source.Fd()), &st); err != nil {
		return 0, from.fail("stat", fromPath, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, from.fail("read", fromPath, unix.ELOOP) // it was one
	}
	to.point()
	fd := -1
	err = to.parent(toPath, func(dir int, name string) (err error) {
		fd, err = unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return 0, to.fail("create", toPath, err)
	}
	target := os.NewFile(uintptr(fd), toPath)
	defer func() { err = errors.Join(err, target.Close()) }()
	if unix.IoctlFileClone(fd, int(source.Fd())) == nil {
		return uint64(st.Nlink), nil
	}
	if err := copyContent(ctx, source, target, st.Size, grown); err != nil {
		return 0, to.fail("copy to", toPath, err)
	}
	return uint64(st.Nlink), nil
}

// copyContent copies what is not a hole.
func copyContent(ctx context.Context, source, target *os.File, size int64, grown func(int64) error) error {
	for at := int64(0); at < size; {
		data, err := unix.Seek(int(source.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			break // nothing but a hole is left
		}
		end := size
		if err != nil {
			data = at // a filesystem that knows no holes
		} else if hole, err := unix.Seek(int(source.Fd()), data, unix.SEEK_HOLE); err == nil {
			end = hole
		}
		for at = data; at < end; {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			for _, f := range []*os.File{source, target} {
				if _, err := f.Seek(at, io.SeekStart); err != nil {
					return err
				}
			}
			// The two files' own copy_file_range, where there is one.
			n, err := io.CopyN(target, source, min(copyChunk, end-at))
			if err != nil && err != io.EOF {
				return err
			}
			if err := grown(n); err != nil {
				return err
			}
			at += n
			if n == 0 {
				return target.Truncate(at) // someone cut it short meanwhile
			}
		}
	}
	return target.Truncate(size)
}
