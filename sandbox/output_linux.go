package sandbox

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// endOutput has a copyOutput that reads from pipe end after what is in it now. No process of the run may be left: each
// has written what it wrote. The pipe's other end can be open all the same, in a message that the run has sent to a
// socket of the host's and that nobody takes, and whoever takes it could go on writing for ever.
func endOutput(pipe *os.File) { _ = pipe.SetReadDeadline(time.Now()) }

// outputBuffer is what is copied at once: half of what a pipe holds.
type outputBuffer [32 << 10]byte

// outputBuffers are used again by one run after the other.
var outputBuffers = sync.Pool{New: func() any { return new(outputBuffer) }}

// copyOutput copies what a run writes, until the pipe's end or endOutput.
func copyOutput(out io.Writer, pipe *os.File) error {
	buffer := outputBuffers.Get().(*outputBuffer)
	defer outputBuffers.Put(buffer)
	// A file would write itself, by way of a buffer that is made for each.
	_, err := io.CopyBuffer(out, struct{ io.Reader }{pipe}, buffer[:])
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	c, err := pipe.SyscallConn()
	if err != nil {
		return err
	}
	var rest []byte
	control := c.Control(func(fd uintptr) { rest, err = readRest(int(fd)) })
	if err := errors.Join(control, err); err != nil {
		return err
	}
	_, err = out.Write(rest)
	return err
}

// readRest reads what is in a pipe, and no more.
func readRest(fd int) ([]byte, error) {
	size, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	if err != nil {
		return nil, err
	}
	rest := make([]byte, size)
	for have := 0; have < len(rest); {
		n, err := unix.Read(fd, rest[have:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN || err == nil && n == 0: // somebody else has read it
			return rest[:have], nil
		case err != nil:
			return rest[:have], err
		}
		have += n
	}
	return rest, nil
}
