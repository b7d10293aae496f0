package sandbox

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// waitPayload reaps until the payload's main process has ended, then ends and reaps everything else.
func waitPayload(main int, looks *watch) (*status, error) {
	st := new(status)
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
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
	alone := errors.Is(unix.Kill(-1, 0), unix.ESRCH)
	st.Found = looks.finish(!alone)
	if alone {
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
