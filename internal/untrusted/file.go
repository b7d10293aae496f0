// Package untrusted reads small files that somebody hostile may have put where they are: a run that
// landed, or whoever wrote the repository. It is a leaf: it imports nothing of airlock.
package untrusted

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNotRegular is what [ReadFile] returns for everything that is there but is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// ReadFile returns the content of the regular file name, which is one path element, in the directory
// dir. It follows no link in that place, does not block on a FIFO, opens no device, and reads at most
// limit bytes: a longer file is an error. A missing file gives an error that is [fs.ErrNotExist].
func ReadFile(dir, name string, limit int64) ([]byte, error) {
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return nil, fmt.Errorf("%q is not one path element", name)
	}
	// The dot makes the kernel refuse what is no directory before it is opened: a FIFO in its place would block.
	root, err := os.OpenRoot(dir + string(filepath.Separator) + ".")
	if err != nil {
		return nil, err
	}
	defer root.Close()

	// Looked at before it is opened, since opening a device can do things; and again after, since it
	// can be swapped in between. O_NONBLOCK lets a FIFO that was swapped in return at once.
	before, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	after, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !after.Mode().IsRegular() || !os.SameFile(before, after) {
		return nil, ErrNotRegular
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("longer than %d bytes", limit)}
	}
	return content, nil
}
