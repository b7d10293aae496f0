package tools

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

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
func (js *jobs) add(what task, t *ticket, cancel context.CancelCauseFunc) (*job, error) {
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
	j := &job{id: id, tool: what.tool, about: what.about, installs: what.installs, goesOn: what.goesOn, cancel: cancel, done: make(chan struct{}), asked: time.Now(), ticket: t}
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
