package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The descriptors of a helper: its end of the socket to the server, and what it is executed from (see startSealed).
const (
	helperLifeline = 3
	helperBinary   = 4
)

// startHelper starts a process beside the server that has the program of a role (roles_linux.go), from exe, an open
// executable file of this program (the sealed copy). It is in a session of its own, so that no terminal's signal ends it
// with the server, and has inherited nothing but one end of a socket of packets. The other end is held by the server
// alone: its end of file is the server's death, however that came.
func startHelper(exe *os.File, name string) (_ *exec.Cmd, conn *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "lifeline")
	defer theirs.Close()
	conn = os.NewFile(uintptr(pair[0]), "lifeline")
	cmd := &exec.Cmd{
		Path:        fmt.Sprintf("/proc/self/fd/%d", helperBinary),
		Args:        []string{name},
		Env:         initEnv,
		Dir:         "/", // a working directory would keep the workspace's file system busy
		ExtraFiles:  []*os.File{theirs, exe},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return cmd, conn, nil
}

// waitHelper waits for one that was sent home. If it hangs nevertheless, the caller must not.
func waitHelper(cmd *exec.Cmd) error {
	late := time.AfterFunc(removeTimeout, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	return cmd.Wait()
}

// beHelper is what every helper does first. It keeps the descriptors up to last.
func beHelper(name string, last int) error {
	nameSelf(name)
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	for fd := helperLifeline; fd <= last; fd++ {
		unix.CloseOnExec(fd)
	}
	return closeInherited(last)
}
