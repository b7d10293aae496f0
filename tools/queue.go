package tools

import (
	"context"
	"slices"
	"sync"
)

// queue lets calls run in the order in which they took a ticket, size of them at once. The reader of
// the conversation takes the tickets, so the order is the order in which the calls were read, however
// the goroutines that serve them are scheduled.
type queue struct {
	mu      sync.Mutex
	size    int
	running int
	waiting []*ticket
}

// ticket is a place in a queue. It is given back with leave, whatever became of the call.
type ticket struct {
	q      *queue
	turn   chan struct{} // closed when it is this ticket's turn
	called bool          // under q.mu: it is or was this ticket's turn
	gone   bool          // under q.mu: it was given back
	handed bool          // under q.mu: who holds it now gives it back
}

func newQueue(size int) *queue { return &queue{size: size} }

// take takes the next place.
func (q *queue) take() *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &ticket{q: q, turn: make(chan struct{})}
	q.waiting = append(q.waiting, t)
	q.call()
	return t
}

// call lets those have their turn for whom there is room. q.mu is held.
func (q *queue) call() {
	for q.running < q.size && len(q.waiting) > 0 {
		t := q.waiting[0]
		q.waiting = slices.Delete(q.waiting, 0, 1)
		t.called = true
		q.running++
		close(t.turn)
	}
}

// wait returns nil when it is t's turn, or the cause of ctx's end.
func (t *ticket) wait(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	select {
	case <-t.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// handOver makes the place outlive the call that took it.
func (t *ticket) handOver() {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	t.handed = true
}

// callEnded gives the place back unless it was handed over.
func (t *ticket) callEnded() {
	t.q.mu.Lock()
	handed := t.handed
	t.q.mu.Unlock()
	if !handed {
		t.leave()
	}
}

// leave gives the place back: the next one has its turn. A second time does nothing.
func (t *ticket) leave() {
	q := t.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.gone {
		return
	}
	t.gone = true
	if t.called {
		q.running--
	} else if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	q.call()
}
