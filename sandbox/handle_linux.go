package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// handle is an open file that is there to be named, a place or a detached mount, and the path that errors call it by. Building
// a root takes hundreds of these, and an os.File costs a system call more each, which asks how it is to be read. It is closed once.
// The zero value is descriptor 0: one that came with an error is not closed.
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
