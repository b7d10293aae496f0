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
	backend  *Native         // kept: if it were collected, its janitor would take this server for dead
	ctx      context.Context // of this run: it ends with the run
	uid, gid int
	init     initProcess
	group    *cgroup // nil if there is none
	pipes    *pipes

	scratch  func(int64)   // Stdio.Scratch
	status   *status       // what init said of the payload's end
	copied   chan struct{} // closed when the output has been read to its end
	unwatch  func() bool   // stops waiting for ctx
	killOnce sync.Once
}

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
func (p *process) abort() {
	p.kill()
	_, _ = p.init.wait()
	endOutput(p.pipes.output)
	<-p.copied
	p.unwatch()
	p.pipes.closeServer()
}

// Wait implements [Process].
func (p *process) Wait() (Exit, error) {
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
	// The namespace is empty then, and what it wrote is in the output pipe.
	state, err := p.init.wait()
	endOutput(p.pipes.output)
	<-p.copied
	killed := !p.unwatch()
	p.pipes.closeServer()

	var exit Exit
	if p.backend.prepared.Load() {
		p.backend.reserve.fill(p.uid, p.gid)
	}
	if p.group != nil {
		exit.Limit, exit.LimitEnded = p.group.reached()
		err = errors.Join(err, p.group.remove())
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

// seen adds what init has seen of the run's limits to what the cgroup has counted.
func (e *Exit) seen(f findings) {
	switch {
	case e.LimitEnded:
	case f.Memory || f.Floor:
		e.Limit, e.LimitEnded, e.HostShort = "memory", true, !f.Memory
	case f.Processes && e.Limit == "":
		e.Limit = "processes"
	}
}
