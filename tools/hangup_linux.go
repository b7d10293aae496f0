package tools

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// watchHangup calls gone when out is a pipe or a socket and nobody is left to read it, which poll
// says before a write does: a run that prints nothing would otherwise go on for nobody. It watches
// until stop is called. Where out cannot be watched, only writes tell.
func watchHangup(out io.Writer, gone func(error)) (stop func()) {
	file, ok := out.(syscall.Conn)
	if !ok {
		return func() {}
	}
	// A descriptor of our own: the caller's may be closed, and its number used for something else,
	// while poll waits.
	fd := -1
	raw, err := file.SyscallConn()
	if err == nil {
		_ = raw.Control(func(theirs uintptr) {
			fd, _ = unix.FcntlInt(theirs, unix.F_DUPFD_CLOEXEC, 3)
		})
	}
	wake, stopped, err := os.Pipe()
	if fd < 0 || err != nil {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer unix.Close(fd)
		defer wake.Close()
		// No event is asked for: POLLERR (a pipe without a reader) and POLLHUP (a socket, a terminal)
		// are always reported.
		fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(wake.Fd())}}
		for {
			_, err := unix.Poll(fds, -1)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil || fds[1].Revents != 0:
				return
			case fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
				gone(unix.EPIPE)
				return
			}
		}
	}()
	return func() {
		_ = stopped.Close() // poll sees POLLHUP on wake
		<-done
	}
}
