package sandbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// Direct is the backend that does not isolate: a run is an ordinary process of the server's user, in a
// session of its own, with the environment that Spec names. It ignores Spec.Mounts, Home, Hostname, UID,
// GID and Limits, so that the caller must let runs work on the workspace itself; it refuses Limits.Strict,
// since it holds none. The zero value is ready.
type Direct struct{}

// outputGrace is how long the output is read after the main process has ended: a process that got away
// into a session of its own may hold the pipe open for ever.
const outputGrace = 500 * time.Millisecond

// Name implements [Backend].
func (Direct) Name() string { return "direct" }

// Unconfined implements [Backend].
func (Direct) Unconfined() bool { return true }

// Probe implements [Backend]. There is nothing that could be missing.
func (Direct) Probe(context.Context) error { return nil }

// Held implements [Backend]: nothing is held.
func (Direct) Held() map[string]string {
	return map[string]string{"processes": "", "memory": "", "disk": "", "files": "", "cpu": ""}
}

// Close implements [Backend].
func (Direct) Close() error { return nil }

// Start implements [Backend].
func (Direct) Start(ctx context.Context, spec Spec, stdio Stdio) (Process, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if spec.Limits.Strict {
		return nil, &SetupError{Op: "hold limits", Err: errors.New("the direct backend holds none"), Hint: `use another backend, or limits.enforce = "best"`}
	}
	p := new(directProcess)
	p.cmd = exec.CommandContext(ctx, spec.Argv[0], spec.Argv[1:]...)
	if file, err := lookPath(spec.Argv[0], spec.Env); err != nil {
		return &directProcess{failed: err}, nil
	} else if p.cmd.Path = file; p.cmd.Err != nil {
		p.cmd.Err = nil // found by the run's PATH, whatever the server's says
	}
	p.cmd.Env, p.cmd.Dir = spec.Env, spec.Dir
	p.cmd.Stdin = stdio.Stdin
	if stdio.Output != nil {
		// os/exec makes one pipe of two outputs only if they compare equal, and not every Writer can be
		// compared; with two pipes the order of what was written would be lost.
		output := &struct{ io.Writer }{stdio.Output}
		p.cmd.Stdout, p.cmd.Stderr = output, output
	}
	p.cmd.SysProcAttr = ownSession()
	p.cmd.WaitDelay = outputGrace
	p.cmd.Cancel = func() error {
		p.killed.Store(true)
		return killSession(p.cmd.Process)
	}
	if err := p.cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return &directProcess{cancelled: true}, nil
		}
		return &directProcess{failed: err}, nil
	}
	return p, nil
}

type directProcess struct {
	cmd       *exec.Cmd
	killed    atomic.Bool
	failed    error // the command could not be executed
	cancelled bool  // the context had ended before it could be

	end    sync.Once // what follows is of Wait
	exit   Exit
	endErr error
}

// Ended implements [Process]. There is no sandbox to be taken down.
func (p *directProcess) Ended() (Exit, error) { return p.Wait() }

// Wait implements [Process].
func (p *directProcess) Wait() (Exit, error) {
	p.end.Do(func() { p.exit, p.endErr = p.wait() })
	return p.exit, p.endErr
}

func (p *directProcess) wait() (Exit, error) {
	if p.cancelled {
		return Exit{Killed: true}, nil
	}
	if p.failed != nil {
		return directFailure(p.failed), nil
	}
	err := p.cmd.Wait()
	// What the main process left in its group ends with it.
	_ = killSession(p.cmd.Process)
	if ee := new(exec.ExitError); errors.As(err, &ee) || errors.Is(err, exec.ErrWaitDelay) || p.killed.Load() {
		err = nil
	}
	exit := directExit(p.cmd.ProcessState)
	if p.killed.Load() && exit.Signal == "SIGKILL" {
		exit = Exit{Killed: true}
	}
	return exit, err
}

// directFailure is what a shell would report of a command that can't be executed.
func directFailure(err error) Exit {
	exit := Exit{Code: 126, StartError: err.Error()}
	if pe := new(fs.PathError); errors.As(err, &pe) {
		exit.StartError = pe.Err.Error()
	}
	if errors.Is(err, fs.ErrNotExist) {
		exit.Code, exit.StartError = 127, "no such file or directory"
	}
	return exit
}
