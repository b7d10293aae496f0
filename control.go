package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"airlock/internal/control"
	"airlock/tools"
)

// control is where the processes that have runs going on listen; see package control.
func (p places) control() string { return filepath.Join(p.state, "control") }

// controlled lets `airlock ps` and `airlock stop` reach this process's runs, until the function that it returns
// is called. Without it the runs go on all the same.
func controlled(p places, runs control.Runs, log *slog.Logger) (end func()) {
	s, err := control.Serve(p.control(), runs)
	if err != nil {
		log.Warn("airlock ps and airlock stop can't reach this process", "err", err)
		return func() {}
	}
	return func() {
		if err := s.Close(); err != nil {
			log.Warn("what airlock ps and airlock stop use could not be removed", "err", err)
		}
	}
}

// conversation is the runs of a server.
type conversation struct {
	*tools.Server
	mu        sync.Mutex
	workspace string
}

func (c *conversation) opened(workspace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workspace = workspace
}

// Runs implements [control.Runs].
func (c *conversation) Runs() []control.Run {
	c.mu.Lock()
	workspace := c.workspace
	c.mu.Unlock()
	var all []control.Run
	for _, r := range c.Server.Runs() {
		state := "running"
		if r.Queued {
			state = "queued"
		}
		all = append(all, control.Run{
			ID: r.ID, Tool: r.Tool, What: firstBytes(r.What), Workspace: workspace, State: state, Since: r.Since, PID: os.Getpid(),
		})
	}
	return all
}

// firstBytes keeps an answer small: a command can be megabytes long.
func firstBytes(s string) string { return s[:min(len(s), 4<<10)] }

// oneControlled is the run of `airlock run`.
type oneControlled struct {
	run    control.Run
	cancel context.CancelCauseFunc
	done   chan struct{}
}

var errStoppedByPS = errors.New("stopped by airlock stop")

// Runs implements [control.Runs].
func (o *oneControlled) Runs() []control.Run { return []control.Run{o.run} }

// Stop implements [control.Runs].
func (o *oneControlled) Stop(ctx context.Context, id string) (bool, error) {
	if id != o.run.ID {
		return false, nil
	}
	o.cancel(errStoppedByPS)
	select {
	case <-o.done:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// asOneControlled does a run that ps and stop can reach.
func asOneControlled(ctx context.Context, p places, workspace string, r tools.Request, do func(context.Context, tools.Request) (tools.Result, error)) (tools.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.ID = tools.NewRunID()
	one := &oneControlled{
		control.Run{ID: r.ID, Tool: "run_shell", What: firstBytes(r.Command), Workspace: workspace, State: "running", Since: time.Now(), PID: os.Getpid()},
		cancel, make(chan struct{}),
	}
	end := controlled(p, one, slog.New(slog.DiscardHandler))
	defer end()
	defer close(one.done)
	return do(ctx, r)
}
