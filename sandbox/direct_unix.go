//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// lookHostPath finds a command by the PATH of the run, not by the server's.
func lookHostPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	result := fs.ErrNotExist
	for _, dir := range filepath.SplitList(getenv(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue // nothing in the workspace is found by accident
		}
		file := filepath.Join(dir, name)
		if st, err := os.Stat(file); err != nil || !st.Mode().IsRegular() {
			continue
		}
		if unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
		result = fs.ErrPermission
	}
	return "", result
}
