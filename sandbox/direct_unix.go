//go:build unix

package sandbox

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// killSession kills the process group that the main process leads.
func killSession(p *os.Process) error {
	err := unix.Kill(-p.Pid, unix.SIGKILL)
	if err == unix.ESRCH { //nolint:errorlint // a bare number
		return os.ErrProcessDone
	}
	return err
}

func directExit(state *os.ProcessState) Exit {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Signal: signalName(ws.Signal())}
	}
	return Exit{Code: state.ExitCode()}
}
