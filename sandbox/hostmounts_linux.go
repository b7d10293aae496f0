package sandbox

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// mountWatch tells of changes of the host's mounts since it was opened.
//
// The kernel tells each open file of a change once, whoever asks: the poller of Go's runtime is somebody too. So there are
// two files, one that is only asked, and one that only wakes who waits.
type mountWatch struct {
	asked  *os.File
	waking *os.File
	text   []byte // of the mounts as they were
}

func watchMounts() (_ *mountWatch, err error) {
	w := new(mountWatch)
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.asked, err = openMounts(0); err != nil {
		return nil, err
	}
	if w.waking, err = openMounts(unix.O_NONBLOCK); err != nil {
		return nil, err
	}
	w.text, err = os.ReadFile("/proc/self/mountinfo")
	return w, err
}

func openMounts(flags int) (*os.File, error) {
	fd, err := unix.Open("/proc/self/mounts", unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/proc/self/mounts", Err: err}
	}
	return os.NewFile(uintptr(fd), "/proc/self/mounts"), nil
}

// changed reports whether there was any change, also one that was taken back.
func (w *mountWatch) changed() bool {
	fds := []unix.PollFd{{Fd: int32(w.asked.Fd()), Events: unix.POLLPRI}}
	n, err := unix.Poll(fds, 0)
	return n != 0 || err != nil
}

// wait returns true when the mounts are others than they were, and false when the watch is closed.
func (w *mountWatch) wait() bool {
	raw, err := w.waking.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(uintptr) bool {
		text, err := os.ReadFile("/proc/self/mountinfo")
		return err != nil || !bytes.Equal(text, w.text)
	})
	return err == nil
}

func (w *mountWatch) close() { closeAll(w.asked, w.waking) }
