package sandbox

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// receiveDescriptors reads one message into b, and what descriptors came with it, most of them at most. The error is io.EOF at
// the end of the stream. A socket that blocks and has a time limit fails at that.
func receiveDescriptors(from *os.File, b []byte, most int) (n int, fds []int, err error) {
	raw, err := from.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	rights := make([]byte, unix.CmsgSpace(4*most))
	var nrights, flags int
	var failed error
	err = raw.Read(func(fd uintptr) (done bool) {
		for {
			n, nrights, flags, _, failed = unix.Recvmsg(int(fd), b, rights, unix.MSG_CMSG_CLOEXEC)
			if failed != unix.EINTR { //nolint:errorlint // never wrapped here
				return failed != unix.EAGAIN //nolint:errorlint // as above
			}
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return 0, nil, os.NewSyscallError("recvmsg", err)
	}
	if n == 0 && nrights == 0 {
		return 0, nil, io.EOF
	}
	messages, err := unix.ParseSocketControlMessage(rights[:nrights])
	for i := range messages {
		more, parseErr := unix.ParseUnixRights(&messages[i])
		fds, err = append(fds, more...), errors.Join(err, parseErr)
	}
	if err == nil && flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = errTruncated
	}
	if err != nil {
		closeDescriptors(fds)
		return 0, nil, err
	}
	return n, fds, nil
}

var errTruncated = errors.New("a message was cut off")

func closeDescriptors(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
