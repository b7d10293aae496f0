package sandbox

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// sendHello tells the server that init runs, and gives it what it can kill and wait for it with.
func sendHello() error {
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(pidfd)
	return os.NewSyscallError("sendmsg", unix.Sendmsg(controlFD, []byte{hello}, unix.UnixRights(pidfd), nil, 0))
}

// receiveHello takes what sendHello sent: the first byte on the socket, and no further one. The error is io.EOF if there will be none.
func receiveHello(control *os.File) (pidfd *os.File, err error) {
	var text [1]byte
	n, fds, err := receiveDescriptors(control, text[:], 1)
	if err != nil {
		return nil, err
	}
	if n != 1 || text[0] != hello || len(fds) != 1 {
		closeDescriptors(fds)
		return nil, errors.New("init did not say hello")
	}
	return os.NewFile(uintptr(fds[0]), "init"), nil
}

// waitPidfd returns when the process has ended. That of a pid namespace's first process means that every other one
// of it was reaped.
func waitPidfd(pidfd *os.File) error {
	for {
		fds := []unix.PollFd{{Fd: int32(pidfd.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("poll", err)
		}
	}
}

// waitChild returns when a child has ended, and does not reap it: its number goes on to be its own.
func waitChild(pid int) error {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("waitid", err)
		}
	}
}

// killPidfd kills a process, unless the pidfd is closed.
func killPidfd(pidfd *os.File) error {
	c, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = c.Control(func(fd uintptr) { failed = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	return errors.Join(err, os.NewSyscallError("pidfd_send_signal", failed))
}
