package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"airlock/envs"
)

// job is what a call asks for, apart from the call: it can outlive it. A call waits for its job as long as
// wait_seconds says and answers with the job's id then; other calls look at the job, wait on, or end it. It
// goes on when nobody waits, and lands when it ends. Its result is kept for the conversation.
type job struct {
	id       string
	tool     string
	about    string // what it runs or installs
	installs bool   // it has no output, and nothing to land
	goesOn   string // the line on the workspace as long as it goes on
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed when result is final
	asked    time.Time

	mu       sync.Mutex
	ticket   *ticket
	running  bool      // it had its turn
	since    time.Time // it had
	free     bool      // a call has answered without it: it holds up no other
	waiting  int       // calls that wait for it
	out      *Output   // nil as long as it has none
	seen     int64     // bytes of the output that a result has shown
	shown    bool      // a result has shown all of it, to its end
	watched  []*progress
	wanted   []func() bool // by the calls that wait for it: false once the client has cancelled one
	last     string        // what line was told last
	question *envs.Plan    // what the user has to be asked, as long as they were not
	result   Result
}

// task is what a job does when it has its turn and the workspace is open.
type task struct {
	tool, about string
	installs    bool
	goesOn      string // see job
	do          func(ctx context.Context, j *job, runner Runner) Result
}

// errStopped is why a run ends that a call ended.
var errStopped = errors.New("stopped")

// kept is how much of the job's output is in a file, in bytes.
func (j *job) kept() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.out == nil {
		return 0
	}
	return j.out.Kept()
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

// awaited notes that a call waits for the job, which has not had its turn. ctx is the call's.
func (j *job) awaited(ctx context.Context) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running {
		return
	}
	j.wanted = append(j.wanted, func() bool { return !errors.Is(context.Cause(ctx), errCancelled) })
}

// unwanted reports whether a call that waits for the job was cancelled. The call ends the job by itself, but that can
// take a moment, in which the job's turn must not begin: a cancellation that was read before counts.
func (j *job) unwanted() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.wanted, func(wanted func() bool) bool { return !wanted() })
}

// turn notes that the job has its turn.
func (j *job) turn() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running, j.since, j.wanted = true, time.Now(), nil
	if j.free {
		j.ticket.leave()
	}
	for _, p := range j.watched {
		p.take()
	}
}

// attended notes that a call waits for the job, until the function that it returns is called.
func (j *job) attended() (left func()) {
	add := func(n int) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.waiting += n
	}
	add(1)
	return func() { add(-1) }
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
		if j.last != "" {
			p.line(j.last)
		}
	}
}

func (j *job) unwatch(p *progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.watched = slices.DeleteFunc(j.watched, func(other *progress) bool { return other == p })
}

// line tells who watches what the last line of the output is, or what is being done.
func (j *job) line(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = text
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
	r = Result{Status: StatusRunning, RunID: j.id, DurationMS: time.Since(j.asked).Milliseconds(), ofPackages: j.installs}
	follower := j.tool
	if j.installs {
		follower = "package_install"
		r.Notes = append(r.Notes, "nothing is installed yet; it goes on")
		if j.last != "" {
			r.Notes[0] += ": " + j.last
		}
	} else {
		r.WorkspaceLine = j.goesOn
	}
	if j.running {
		r.DurationMS = time.Since(j.since).Milliseconds()
	} else {
		r.Notes = append(r.Notes, "the run has not begun: it waits for those that came before it")
	}
	r.Notes = append(r.Notes, fmt.Sprintf("%s with run_id=%q waits on for it, and with stop=true ends it", follower, j.id))
	return r, false
}
