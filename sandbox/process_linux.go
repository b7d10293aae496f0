package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
)

// process is a run of the native backend, as the server sees it.
type process struct {
	backend *Native         // kept: if it were collected, its janitor would take this server for dead
	ctx     context.Context // of this run: it ends with the run
	init    initProcess
	group   *cgroup // nil if there is none
	pipes   *pipes

	scratch  func(int64)   // Stdio.Scratch
	status   *status       // what init said of the payload's end
	copied   chan struct{} // closed when the output has been read to its end
	unwatch  func() bool   // stops waiting for ctx
	killOnce sync.Once

	end     sync.Once // what follows is of Ended
	exit    Exit
	endErr  error
	waited  sync.Once // what follows is of Wait
	waitErr error
	left    sync.Once // what follows is of waitInit
	state   string
	initErr error
}

// killed is a run whose context ended before it began.
type killed struct{}

func (killed) Ended() (Exit, error) { return Exit{Killed: true}, nil }
func (killed) Wait() (Exit, error)  { return Exit{Killed: true}, nil }

// begin starts what goes on beside the run: reading its output, writing its input, watching its context.
func (p *process) begin(stdio Stdio) {
	p.copied = make(chan struct{})
	p.scratch = stdio.Scratch
	go func() {
		defer close(p.copied)
		out := stdio.Output
		if out == nil {
			out = io.Discard
		}
		// An output that fails is not the run's to notice: what it writes goes on being read.
		if err := copyOutput(out, p.pipes.output); err != nil {
			_ = copyOutput(io.Discard, p.pipes.output)
		}
	}()
	if p.pipes.input != nil {
		go func() {
			// A run that doesn't read its input makes this fail with EPIPE at its end.
			_, _ = io.Copy(p.pipes.input, stdio.Stdin)
			p.pipes.input.Close()
		}()
	}
	// Killing init is killing all of the run: the kernel ends a pid namespace with its first process.
	p.unwatch = context.AfterFunc(p.ctx, p.kill)
}

func (p *process) kill() { p.killOnce.Do(p.init.kill) }

// abort ends a run that was never handed to the caller.
func (p *process) abort() error {
	p.kill()
	_, _ = p.init.wait()
	endOutput(p.pipes.output)
	<-p.copied
	p.unwatch()
	p.pipes.closeServer()
	if p.group != nil {
		return p.group.remove()
	}
	return nil
}

// Ended implements [Process].
func (p *process) Ended() (Exit, error) {
	p.end.Do(func() {
		p.exit, p.endErr = p.ended()
		p.backend.reserve.left()
	})
	return p.exit, p.endErr
}

// Wait implements [Process].
func (p *process) Wait() (Exit, error) {
	exit, err := p.Ended()
	p.waited.Do(func() {
		p.pipes.control.Close() // what init waits for once it has given its status
		_, p.waitErr = p.waitInit()
		p.pipes.closeServer()
		if p.group != nil {
			p.waitErr = errors.Join(p.waitErr, p.group.remove())
		}
	})
	return exit, errors.Join(err, p.waitErr)
}

// waitInit returns when the namespaces are empty, and says how init ended.
func (p *process) waitInit() (string, error) {
	p.left.Do(func() { p.state, p.initErr = p.init.wait() })
	return p.state, p.initErr
}

// ended is Ended. Init has reaped all of the payload's processes before it says how the main one ended; without its word
// they are gone when init is, and the kernel has emptied the namespace.
func (p *process) ended() (Exit, error) {
	var lost error
	for p.status == nil && lost == nil {
		m, err := receive(p.pipes.control)
		switch {
		case err != nil:
			lost = err
		case m.Failed != nil:
			lost = m.Failed.setupError()
		case m.Scratch != nil:
			p.tellScratch(m.Scratch.Bytes)
		default:
			p.status = m.Status
		}
	}
	var state string
	var err error
	if p.status == nil {
		p.pipes.control.Close() // nothing that comes on it could be understood
		state, err = p.waitInit()
	}
	// All that could write to the output is gone, and what it wrote is in the pipe.
	endOutput(p.pipes.output)
	<-p.copied
	killed := !p.unwatch()

	var exit Exit
	if p.group != nil {
		exit.Limit, exit.LimitEnded = p.group.reached()
	}
	switch {
	case p.status != nil:
		exit.Code, exit.StartError, exit.Ended, exit.Torn = p.status.Code, p.status.StartError, p.status.Ended, p.status.Torn
		if s := p.status.Signal; s != 0 {
			exit.Signal = signalName(syscall.Signal(s))
		}
		exit.seen(p.status.Found)
		p.tellScratch(p.status.Found.Scratch)
	case killed:
		exit.Killed = true
	case exit.LimitEnded:
		exit.Signal = "SIGKILL" // init was what the kernel chose
	default:
		err = errors.Join(err, fmt.Errorf("sandbox: init ended without a status (%s): %w", state, lost))
	}
	return exit, err
}

func (p *process) tellScratch(bytes int64) {
	if p.scratch != nil {
		p.scratch(bytes)
	}
}

// seen adds what init has seen of the run to what the cgroup has counted.
func (e *Exit) seen(f findings) {
	e.Unrouted = f.Unrouted
	switch {
	case e.LimitEnded:
	case f.Memory || f.Floor:
		e.Limit, e.LimitEnded, e.HostShort = "memory", true, !f.Memory
	case f.Processes && e.Limit == "":
		e.Limit = "processes"
	}
}
