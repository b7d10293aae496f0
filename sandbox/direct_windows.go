package sandbox

import (
	"os"
	"os/exec"
	"syscall"
)

// Windows has no sessions or signals: only the main process is ended.

func ownSession() *syscall.SysProcAttr { return nil }

func killSession(p *os.Process) error { return p.Kill() }

func directExit(state *os.ProcessState) Exit { return Exit{Code: state.ExitCode()} }

func lookPath(name string, _ []string) (string, error) { return exec.LookPath(name) }
