package tools

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

func isTurn(t *ticket) bool {
	select {
	case <-t.turn:
		return true
	default:
		return false
	}
}

func TestQueueIsInOrder(t *testing.T) {
	q := newQueue(1)
	a, b, c := q.take(), q.take(), q.take()
	if !isTurn(a) || isTurn(b) || isTurn(c) {
		t.Fatal("not the first alone")
	}
	b.leave() // cancelled while it waits
	if isTurn(b) || isTurn(c) {
		t.Fatal("one that leaves while it waits lets the next one through")
	}
	a.leave()
	a.leave()
	if !isTurn(c) {
		t.Fatal("the next one does not have its turn")
	}
	d := q.take()
	if isTurn(d) {
		t.Fatal("a second leave made room")
	}
	c.leave()
	if !isTurn(d) {
		t.Fatal("the last one does not have its turn")
	}
	d.leave()
	if len(q.waiting) != 0 || q.running != 0 {
		t.Errorf("left: %d wait, %d run", len(q.waiting), q.running)
	}
}

func TestQueueLetsSeveralThrough(t *testing.T) {
	q := newQueue(3)
	var ts []*ticket
	for range 5 {
		ts = append(ts, q.take())
	}
	for i, want := range []bool{true, true, true, false, false} {
		if isTurn(ts[i]) != want {
			t.Errorf("ticket %d: %v", i, !want)
		}
	}
	ts[1].leave()
	if !isTurn(ts[3]) || isTurn(ts[4]) {
		t.Error("one that leaves makes room for one")
	}
}

func TestQueueWaitEndsWithItsContext(t *testing.T) {
	q := newQueue(1)
	first, second := q.take(), q.take()
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := second.wait(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if err := first.wait(ctx); !errors.Is(err, why) {
		t.Errorf("whose turn it is and whose context has ended does not go on; got %v", err)
	}
	if err := first.wait(t.Context()); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestQueueUnderLoad(t *testing.T) {
	q := newQueue(1)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var order, want []int
	for i := range 2000 {
		ticket := q.take()
		if i%3 != 0 {
			want = append(want, i)
		}
		wg.Go(func() {
			defer ticket.leave()
			if i%3 == 0 {
				return // cancelled
			}
			if err := ticket.wait(t.Context()); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		})
	}
	wg.Wait()
	if !slices.Equal(order, want) {
		t.Error("not in the order of the tickets")
	}
}
