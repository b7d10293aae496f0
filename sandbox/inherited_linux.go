package sandbox

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// closeInherited closes the descriptors above last that came over exec: those that the server was itself
// started with, without close-on-exec, are passed on by every exec since. What this process opened,
// the Go runtime's own included, is close-on-exec and stays.
func closeInherited(last int) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return setupError("list descriptors in", "/proc/self/fd", err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= last {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
	return nil
}
