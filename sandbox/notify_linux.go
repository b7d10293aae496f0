package sandbox

import (
	"errors"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is a system call of the payload's that waits for an answer: the kernel's struct
// seccomp_notif. The call's arguments are the payload's word, pointers into its memory included.
type notification struct {
	id    uint64
	tid   uint32 // of the calling thread, in init's pid namespace
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// verdict is the kernel's struct seccomp_notif_resp.
type verdict struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// listener is the descriptor of a filter whose rules say notify. It gives each such call to one reader.
type listener int

// installListener puts a process under a filter with a listener, by install. It reports false, and installs the filter with only
// the other rules, where the process is already under a filter that has a listener (a
// container engine's): the kernel allows one to a process.
func installListener(notified, others []rule, install filterInstaller) (_ listener, ok bool, err error) {
	rules := slices.Concat(notified, others)
	// With WAIT_KILLABLE_RECV (Linux 5.19) only a fatal signal interrupts a call once it has been received.
	// Without it any signal does, and a call that was carried out can seem to fail with EINTR.
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0} {
		fd, err := install(rules, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|flags)
		switch {
		case err == nil:
			l := listener(fd)
			// Linux 6.6: whoever waits for the answer is woken on this processor. Only time depends on it.
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(l), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
			return l, true, nil
		case errors.Is(err, unix.EBUSY):
			_, err := install(others, 0)
			return -1, false, err
		case flags == 0 || !errors.Is(err, unix.EINVAL):
			return -1, false, err
		}
	}
	panic("unreachable: the last flags are 0")
}

// receive waits for the next call.
func (l listener) receive() (notification, error) {
	for {
		// The kernel writes its own idea of the struct, which may be longer than this one some day.
		var room struct {
			notification
			_ [256]byte
		}
		errno := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&room))
		switch errno {
		case 0:
			return room.notification, nil
		case unix.EINTR:
			continue
		case unix.ENOENT: // the caller was killed meanwhile, or there is none any more, nor will be
			if l.deserted() {
				return notification{}, errNoCallers
			}
			continue
		}
		return notification{}, errno
	}
}

// errNoCallers says that nobody is under the filter any more.
var errNoCallers = errors.New("no process is left whose calls could be notified")

// deserted reports whether nobody is under the filter any more.
func (l listener) deserted() bool {
	fds := []unix.PollFd{{Fd: int32(l), Events: unix.POLLIN}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&unix.POLLHUP != 0
}

// valid reports whether the call still waits: what was read through its thread's id before was then read
// from the thread that made the call, and not from another that got its number.
func (l listener) valid(id uint64) bool {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

// letPass has the kernel carry the call out as if there were no listener. It looks at the arguments anew,
// and checks the caller's rights to all it does: this grants nothing.
func (l listener) letPass(id uint64) {
	l.send(verdict{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

// answer ends the call with errno; 0 is success.
func (l listener) answer(id uint64, errno unix.Errno) {
	l.send(verdict{id: id, errno: -int32(errno)})
}

// send gives a verdict. Its failure is the caller's death, after which there is nobody to tell.
func (l listener) send(v verdict) {
	for l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&v)) == unix.EINTR {
	}
}

func (l listener) ioctl(request uintptr, arg unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l), request, uintptr(arg))
	return errno
}
