package sandbox

import (
	"errors"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waitPayload reaps until the payload's main process has ended, then ends and reaps everything else.
func waitPayload(main int, looks *watch) (*status, error) {
	st := new(status)
	for {
		// The main process is looked after while it is still a zombie: with it, the run has as many processes
		// as it had at its end.
		pid, err := nextZombie()
		if err == nil && pid == main {
			st.Found = looks.finish()
		}
		var ws unix.WaitStatus
		if err == nil {
			_, err = unix.Wait4(pid, &ws, 0, nil)
		}
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, setupError("wait for the command", "", err)
		}
		if pid != main {
			continue
		}
		if ws.Signaled() {
			st.Signal = int(ws.Signal())
		} else {
			st.Code = ws.ExitStatus()
		}
		break
	}
	// Everything that init can see is of this run; init itself is spared by the kernel.
	if errors.Is(unix.Kill(-1, 0), unix.ESRCH) {
		return st, nil
	}
	st.Ended = countChildren()
	if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return nil, setupError("end background processes", "", err)
	}
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return st, nil // ECHILD
		}
	}
}

// siginfoPID is where siginfo_t has si_pid: behind three numbers, aligned as a pointer is.
const siginfoPID = (3*4 + unsafe.Sizeof(uintptr(0)) - 1) &^ (unsafe.Sizeof(uintptr(0)) - 1)

// nextZombie waits until a child has ended, and leaves it to be reaped.
func nextZombie() (pid int, err error) {
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		return 0, err
	}
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), siginfoPID))), nil
}

// countChildren counts the children of init that still run. Whatever the main process left behind is a
// child of init by now, or below one. /proc may be incomplete while processes come and go, so that the
// number is a report and decides nothing.
func countChildren() int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if st, err := readStat(pid); err == nil && st.parent == 1 && st.state != 'Z' && st.state != 'X' {
			n++
		}
	}
	return n
}
