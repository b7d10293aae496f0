package procfile

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// room is how much a buffer holds at first, in bytes; it grows for the few files that are longer.
const room = 16 << 10

// rooms are what files are read into, each used again: what a file says is a small part of it.
var rooms = sync.Pool{New: func() any {
	text := make([]byte, 0, room)
	return &text
}}

// Read returns what a file says. The error is an *os.PathError.
func Read(name string) ([]byte, error) {
	fd, err := openFile(name)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	into := rooms.Get().(*[]byte)
	defer rooms.Put(into)
	text := (*into)[:0]
	for {
		if len(text) == cap(text) {
			text = slices.Grow(text, len(text))
			*into = text
		}
		n, err := unix.Read(fd, text[len(text):cap(text)])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, &os.PathError{Op: "read", Path: name, Err: err}
		case n == 0:
			return bytes.Clone(text), nil
		default:
			text = text[:len(text)+n]
		}
	}
}

func openFile(name string) (int, error) {
	for {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
