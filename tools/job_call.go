package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// errByUser is why a run ends that the user ended from outside of the conversation.
var errByUser = errors.New("the user stopped the run (airlock stop)")

// RunInfo is a run that goes on.
type RunInfo struct {
	ID     string
	Tool   string
	What   string // its command or program
	Queued bool   // it has not begun
	Since  time.Time
}

// Runs lists the runs of the conversation that go on, in the order in which they were asked for. It is safe for
// concurrent use, as Stop is.
func (s *Server) Runs() []RunInfo {
	s.jobs.mu.Lock()
	all := slices.Clone(s.jobs.all)
	s.jobs.mu.Unlock()
	var infos []RunInfo
	for _, j := range all {
		if j.isDone() {
			continue
		}
		j.mu.Lock()
		info := RunInfo{ID: j.id, Tool: j.tool, What: j.about, Queued: !j.running, Since: j.since}
		if info.Queued {
			info.Since = j.asked
		}
		j.mu.Unlock()
		infos = append(infos, info)
	}
	return infos
}

// Stop ends a run that goes on, as the user's wish, and waits until it has ended. known is false if there is
// none.
func (s *Server) Stop(ctx context.Context, id string) (known bool, err error) {
	j, err := s.jobs.find(id)
	if err != nil || j.isDone() {
		return false, nil
	}
	j.cancel(errByUser)
	select {
	case <-j.done:
		return true, nil
	case <-ctx.Done():
		return true, fmt.Errorf("run %s has not ended yet: %w", id, context.Cause(ctx))
	}
}

// start makes a job of a call with good arguments, which p is told of, and begins it. The job is in the queue
// by t.
func (s *Server) start(ctx context.Context, c call, t *ticket, what task, req mcp.CallToolRequest, p *progress) (*job, error) {
	called := ctx
	ctx, cancel := context.WithCancelCause(c.conversation)
	j, err := s.jobs.add(what, t, cancel)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	j.awaited(called)
	j.watch(p)
	go func() {
		defer cancel(nil)
		defer s.jobs.forget()
		result := s.work(ctx, c, j, what, req)
		if errors.Is(context.Cause(ctx), errByUser) && result.Status == StatusCancelled {
			result.Notes = append(result.Notes, errByUser.Error())
		}
		result.ofPackages = what.installs
		j.mu.Lock()
		defer j.mu.Unlock()
		j.result = result
		s.unheard(j)
		close(j.done)
		if j.free {
			j.ticket.leave()
		}
	}()
	return j, nil
}

// work does a job in its turn.
func (s *Server) work(ctx context.Context, c call, j *job, what task, req mcp.CallToolRequest) (result Result) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(what.tool, p)
			result = Failed("internal error; the server's log says more")
		}
	}()
	never := Result{Status: StatusCancelled, Notes: []string{"The call never started."}}
	if err := j.ticket.wait(ctx); err != nil {
		return never
	}
	place := s.places.take()
	defer place.leave()
	if err := place.wait(ctx); err != nil {
		return never
	}
	if j.unwanted() {
		return never
	}
	j.turn()
	c.room(ctx)
	runner, news, err := s.open(ctx, req)
	if err != nil {
		s.log.Warn("no run is possible", "err", err)
		return Refused(err.Error())
	}
	result = what.do(ctx, j, runner)
	if news != "" {
		result.Notes = append(result.Notes, news)
	}
	return result
}

// running is the task of a call that runs something.
func (s *Server) running(r Request) task {
	return task{tool: r.Tool, about: r.Command + r.Code + r.File, goesOn: s.opts.Policy.goesOn(), do: func(ctx context.Context, j *job, runner Runner) Result {
		r.ID = j.id
		r.Printing = func(out *Output) {
			if s.opts.OutputFile != nil {
				out.KeepIn(func() (*os.File, error) { return s.outputFile(j.id + ".txt") })
			}
			j.mu.Lock()
			defer j.mu.Unlock()
			j.out = out
		}
		if err := runner.Permit(r); err != nil {
			return Refused(err.Error())
		}
		result, err := runner.Run(ctx, r, j.line)
		if err != nil {
			s.log.Error("a run failed", "tool", r.Tool, "err", err)
			return Failed("internal error: " + err.Error())
		}
		return result
	}}
}

// outputFile makes one at a time.
func (s *Server) outputFile(name string) (*os.File, error) {
	s.files.Lock()
	defer s.files.Unlock()
	return s.opts.OutputFile(name)
}

// await waits for a job as a call does that tells p of it, and gives what the call answers.
func (s *Server) await(ctx context.Context, j *job, wait time.Duration, p *progress) Result {
	defer j.unwatch(p)
	defer j.attended()()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-j.done:
	case <-ctx.Done(): // who cancels the call that waits for a run means the run
		j.cancel(context.Cause(ctx))
		<-j.done
	case <-timer.C:
		if s.ending.Load() { // nobody can ask for the run any more
			j.cancel(errInputEnded)
			<-j.done
		}
		j.release()
	}
	return j.report()
}

// follow serves a call that names a job.
func (s *Server) follow(ctx context.Context, c call, r Request) Result {
	c.ticket.leave()
	j, err := s.jobs.find(r.RunID)
	if err != nil {
		return Failed(err.Error())
	}
	p := startProgress(c.token, s.every, c.notify)
	defer p.stop()
	j.watch(p)
	defer j.unwatch(p)
	switch {
	case r.Stop && j.isDone():
		result := j.report()
		result.Notes = append(slices.Clip(result.Notes), "the run had ended before it was to be stopped")
		return result
	case r.Stop:
		j.cancel(errStopped)
		return s.await(ctx, j, stopWait, p)
	case r.Offset >= 0:
		if r.Wait > 0 {
			timer := time.NewTimer(r.Wait)
			defer timer.Stop()
			select {
			case <-j.done:
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		return j.read(r.Offset)
	}
	j.awaited(ctx)
	return s.await(ctx, j, s.waitOf(r), p)
}

// stopWait is how long a call that ends a run waits for its end. It takes some milliseconds.
const stopWait = 30 * time.Second

// waitOf is how long a call waits for its run.
func (s *Server) waitOf(r Request) time.Duration {
	if r.Wait >= 0 {
		return r.Wait
	}
	return s.opts.Policy.Limits.Wait.Std()
}
