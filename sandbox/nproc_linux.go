package sandbox

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// boundByRlimit reports whether RLIMIT_NPROC bounds the processes of the server's own uid, once they have no
// capability. The kernel exempts one user by number, root of the host, whatever number it goes by in a user namespace: root of a
// container that an ordinary user made is bound, and with "--map-user=1000" of unshare(1) root of the host is one that is
// not. A map of ids tells only what they are in the namespace above, so that in any but the host's it is tried.
func boundByRlimit() bool {
	if m, err := os.ReadFile("/proc/self/uid_map"); err == nil && mapsAllOntoThemselves(string(m)) {
		return os.Geteuid() != 0
	}
	found, err := inNamespaces(context.Background(), 0, &checkOrder{Processes: true})
	return err == nil && errors.Is(unix.Errno(found[outsideProcesses].Errno), unix.EAGAIN)
}

// mapsAllOntoThemselves reports whether a uid_map leaves every number what it is. The map of the host's own namespace
// does, and that of another can only if those above it do.
func mapsAllOntoThemselves(uidMap string) bool {
	return strings.Join(strings.Fields(uidMap), " ") == "0 0 4294967295"
}

// forkBeyondRlimit tries to fork where RLIMIT_NPROC allows no process at all: EAGAIN says that it binds. The child is sent to
// a directory that is none, so that one that was forked executes nothing.
func forkBeyondRlimit() error {
	reserveThreads(4) // the runtime takes it for fatal if it can't make one
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &old); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 0, Max: old.Max}); err != nil {
		return err
	}
	_, err := syscall.ForkExec("/proc/self/exe", nil, &syscall.ProcAttr{Dir: os.DevNull})
	return errors.Join(err, unix.Setrlimit(unix.RLIMIT_NPROC, &old))
}
