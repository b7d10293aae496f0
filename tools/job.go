package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// job is what a call asks for, apart from the call: it can outlive it. A call waits for its job as long as
// wait_seconds says and answers with the job's id then; other calls look at the job, wait on, or end it. It
// goes on when nobody waits, and lands when it ends. Its result is kept for the conversation.
type job struct {
	id     string
	tool   string
	about  string // what it runs
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when result is final
	asked  time.Time

	mu      sync.Mutex
	ticket  *ticket
	running bool      // it had its turn
	since   time.Time // it had
	free    bool      // a call has answered without it: it holds up no other
	out     *Output   // nil as long as it has none
	seen    int64     // bytes of the output that a result has shown
	shown   bool      // a result has shown all of it, to its end
	watched []*progress
	result  Result
}

// errStopped is why a run ends that a call ended.
var errStopped = errors.New("stopped")

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

// maxKept is how many jobs that are over a conversation keeps, with their output, and maxKeptTexts how much output
// of all of them is in files, in bytes. maxWaiting is how many may go on or wait for their turn.
const (
	maxKept      = 64
	maxKeptTexts = 512 << 20
	maxWaiting   = 256
)

// jobs are those of a conversation.
type jobs struct {
	mu   sync.Mutex
	all  []*job // in the order in which they came
	over error  // why none may begin any more
}

// add makes a job that can begin.
func (js *jobs) add(r Request, t *ticket, cancel context.CancelCauseFunc) (*job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if js.over != nil {
		return nil, js.over
	}
	waiting := 0
	for _, j := range js.all {
		if !j.isDone() {
			waiting++
		}
	}
	if waiting >= maxWaiting {
		return nil, fmt.Errorf("%d runs of this conversation go on or wait for their turn; wait for one of them, or end one (run_id with stop=true), before the next", waiting)
	}
	id := NewRunID()
	for slices.ContainsFunc(js.all, func(j *job) bool { return j.id == id }) {
		id = NewRunID()
	}
	j := &job{id: id, tool: r.Tool, about: r.Command + r.Code + r.File, cancel: cancel, done: make(chan struct{}), asked: time.Now(), ticket: t}
	js.all = append(js.all, j)
	return j, nil
}

// find returns the job with an id.
func (js *jobs) find(id string) (*job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	var known []string
	for _, j := range slices.Backward(js.all) {
		if j.id == id {
			return j, nil
		}
		known = append(known, j.id)
	}
	shown := strconv.QuoteToASCII(firstChars(id, 64))
	if len(known) == 0 {
		return nil, fmt.Errorf("run_id: there is no run %s; this conversation has had none yet", shown)
	}
	return nil, fmt.Errorf("run_id: there is no run %s in this conversation; there are %s", shown, shortList(known, 10))
}

// forget drops the oldest jobs that are over, and their output, beyond what is kept.
func (js *jobs) forget() {
	js.mu.Lock()
	defer js.mu.Unlock()
	over, bytes := 0, int64(0)
	for i := len(js.all) - 1; i >= 0; i-- {
		j := js.all[i]
		if !j.isDone() {
			continue
		}
		over++
		if bytes += j.kept(); over > maxKept || bytes > maxKeptTexts {
			j.drop()
		}
		if over > maxKept {
			js.all = slices.Delete(js.all, i, i+1)
		}
	}
}

// kept is how much of the job's output is in a file, in bytes.
func (j *job) kept() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.out == nil {
		return 0
	}
	return j.out.Kept()
}

// end ends all of them and waits until they have.
func (js *jobs) end(ctx context.Context, cause error) {
	js.mu.Lock()
	js.over = cause
	all := slices.Clone(js.all) // forget moves them
	js.mu.Unlock()
	for _, j := range all {
		j.cancel(cause)
	}
	for _, j := range all {
		select {
		case <-j.done:
			j.drop()
		case <-ctx.Done():
			return
		}
	}
}

func (j *job) isDone() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// drop removes what the job keeps on disk.
func (j *job) drop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.out != nil {
		j.out.Close()
	}
}

// release lets the calls that came after this one have their turn although its run goes on. Otherwise the
// place is given back when the call is answered, so that no later call's answer comes before it.
func (j *job) release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.isDone() {
		return
	}
	j.free = true
	j.ticket.handOver()
	if j.running {
		j.ticket.leave()
	}
}

// turn notes that the job has its turn.
func (j *job) turn() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running, j.since = true, time.Now()
	if j.free {
		j.ticket.leave()
	}
	for _, p := range j.watched {
		p.take()
	}
}

// watch has p told of the job's output, unwatch ends that.
func (j *job) watch(p *progress) {
	if p == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.watched = append(j.watched, p)
	if j.running {
		p.take()
		if j.out != nil {
			p.line(j.out.LastLine())
		}
	}
}

func (j *job) unwatch(p *progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.watched = slices.DeleteFunc(j.watched, func(other *progress) bool { return other == p })
}

// line tells who watches what the last line of the output is.
func (j *job) line(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.watched {
		p.line(text)
	}
}

// report is the result as a call gets it now, with the output since the last look.
func (j *job) report() Result {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, done := j.state()
	switch {
	case j.out == nil || done && j.seen == 0 && !j.shown: // all of it is in the result
	case j.shown:
		r.Output, r.OutputDroppedBytes = "", 0
		r.Notes = append(slices.Clip(r.Notes), "the output was shown already; offset=0 reads it from the beginning")
	default:
		r.Output, r.OutputDroppedBytes, j.seen = j.out.Since(j.seen)
	}
	j.shown = done
	if r.OutputDroppedBytes > 0 {
		r.OutputFile = j.out.File()
	}
	return r
}

// read is the result with the output from an offset on, as much as one result shows. It does not count as a
// look.
func (j *job) read(offset int64) Result {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, done := j.state()
	if j.out == nil {
		return r
	}
	text, next, total, err := j.out.From(offset, done)
	r.Output, r.OutputDroppedBytes = text, 0
	switch {
	case err != nil:
		r.Notes = append(slices.Clip(r.Notes), err.Error())
	case offset > total:
		r.Notes = append(slices.Clip(r.Notes), fmt.Sprintf("offset: the output has %s bytes so far", grouped(total)))
	case next < total:
		r.Notes = append(slices.Clip(r.Notes), fmt.Sprintf("bytes %s to %s of %s; offset=%d reads on", grouped(offset), grouped(next), grouped(total), next))
	}
	return r
}

// state is the result without regard to who saw what of the output. j.mu is held.
func (j *job) state() (r Result, done bool) {
	if j.isDone() {
		return j.result, true
	}
	r = Result{
		Status: StatusRunning, RunID: j.id, DurationMS: time.Since(j.asked).Milliseconds(),
		WorkspaceLine: "workspace: nothing landed yet; the run goes on, and lands when it ends well",
	}
	if j.running {
		r.DurationMS = time.Since(j.since).Milliseconds()
	} else {
		r.Notes = append(r.Notes, "the run has not begun: it waits for those that came before it")
	}
	r.Notes = append(r.Notes, fmt.Sprintf("%s with run_id=%q waits on for it, and with stop=true ends it", j.tool, j.id))
	return r, false
}

// start makes a job of a call with good arguments, which p is told of, and begins it.
func (s *Server) start(c call, r Request, req mcp.CallToolRequest, p *progress) (*job, error) {
	ctx, cancel := context.WithCancelCause(c.conversation)
	j, err := s.jobs.add(r, c.ticket, cancel)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	j.watch(p)
	go func() {
		defer cancel(nil)
		defer s.jobs.forget()
		result := s.work(ctx, c, j, r, req)
		if errors.Is(context.Cause(ctx), errByUser) && result.Status == StatusCancelled {
			result.Notes = append(result.Notes, errByUser.Error())
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.result = result
		close(j.done)
		if j.free {
			j.ticket.leave()
		}
	}()
	return j, nil
}

// work does a job in its turn.
func (s *Server) work(ctx context.Context, c call, j *job, r Request, req mcp.CallToolRequest) (result Result) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(r.Tool, p)
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
	j.turn()
	c.room(ctx)
	runner, news, err := s.open(ctx, req)
	if err != nil {
		s.log.Warn("no run is possible", "err", err)
		return Refused(err.Error())
	}
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
		result = Refused(err.Error())
	} else if result, err = runner.Run(ctx, r, j.line); err != nil {
		s.log.Error("a run failed", "tool", r.Tool, "err", err)
		result = Failed("internal error: " + err.Error())
	}
	if news != "" {
		result.Notes = append(result.Notes, news)
	}
	return result
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
