package procfile

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// room is how much is read at once, in bytes: most such files are shorter.
const room = 4 << 10

// Read returns what a file says. The error is an *os.PathError.
func Read(name string) ([]byte, error) {
	fd, err := openFile(name)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	var text []byte
	for {
		text = slices.Grow(text, room)
		n, err := unix.Read(fd, text[len(text):cap(text)])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, &os.PathError{Op: "read", Path: name, Err: err}
		case n == 0:
			return text, nil
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
