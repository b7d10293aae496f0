package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// handle is an open file that is there to be named, a place or a detached mount, and the path that errors call it by. Building
// a root takes hundreds of these, and an os.File costs a system call more each, which asks how it is to be read.
type handle struct {
	fd   int
	path string
}

// Fd is the descriptor, as an os.File has it.
func (h handle) Fd() uintptr { return uintptr(h.fd) }

// Close closes the descriptor, which nothing else does.
func (h handle) Close() error { return unix.Close(h.fd) }

// file hands the descriptor over to an os.File.
func (h handle) file() *os.File { return os.NewFile(uintptr(h.fd), h.path) }

// writeFile writes content to a file with one call, as what the kernel offers below /proc/sys wants it. It is os.WriteFile
// without what that does for files that can be waited for.
func writeFile(name string, content []byte, flags int, mode uint32) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC|flags, mode)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for len(content) > 0 {
		n, err := unix.Write(fd, content)
		if err != nil && err != unix.EINTR { //nolint:errorlint // never wrapped here
			return err
		}
		content = content[max(n, 0):]
	}
	return nil
}
