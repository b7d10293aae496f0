package proxy

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// splicePipe is the size of the pipe between two sockets, in bytes, and the most that one call moves. (What a kernel does not give is
// less, and costs more calls.)
const splicePipe = 1 << 20

// splice has the kernel move bytes from one socket to another until the first ends; not done if that could not be begun. It is what
// io.Copy does, but that it tells Go's scheduler nothing of its calls: none of them waits, and each takes long enough for the
// scheduler to be at the work of finding another thread for what else there might be, again and again. That was a fifth of what a
// relay took of the processor.
func splice(to, from net.Conn) (done bool, err error) {
	source, sink := rawOf(from), rawOf(to)
	if source == nil || sink == nil {
		return false, nil
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return false, nil
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	_, _ = unix.FcntlInt(uintptr(ends[0]), unix.F_SETPIPE_SZ, splicePipe)

	var held, moved int
	var errno syscall.Errno
	// The pipe is empty before each of these, so that EAGAIN is the socket's.
	fill := func(fd uintptr) (done bool) {
		held, errno = spliceOnce(fd, uintptr(ends[1]), splicePipe)
		return errno != unix.EAGAIN
	}
	drain := func(fd uintptr) (done bool) {
		moved, errno = spliceOnce(uintptr(ends[0]), fd, held)
		return errno != unix.EAGAIN
	}
	for begun := false; ; begun = true {
		err := source.Read(fill)
		if err == nil && errno == unix.EINVAL && !begun {
			return false, nil // no kernel known does this for TCP
		}
		if err = spliced(err, errno); err != nil || held == 0 {
			return true, err
		}
		for held > 0 {
			err := sink.Write(drain)
			if err = spliced(err, errno); err != nil {
				return true, err
			}
			held -= moved
		}
	}
}

func spliceOnce(from, to uintptr, n int) (int, syscall.Errno) {
	for {
		moved, _, errno := unix.RawSyscall6(unix.SYS_SPLICE, from, 0, to, 0, uintptr(n), unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if errno == 0 {
			return int(moved), 0
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}

// spliced is the error of a wait for a socket, or else of the call that followed.
func spliced(err error, errno syscall.Errno) error {
	if err == nil && errno != 0 {
		err = os.NewSyscallError("splice", errno)
	}
	return err
}

// rawOf is the socket of a TCP connection, or nil.
func rawOf(conn net.Conn) syscall.RawConn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
