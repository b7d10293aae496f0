// Package lull tells what can be done later when nobody waits for an answer. What follows an answer, as taking down what was of
// a run, beginning what the next one needs and collecting garbage, is work for every processor: while runs begin and end one after
// the other, or at once, it would hold up those that somebody waits for.
//
// It knows when what is waited for begins and ends, for the whole process, since all of it shares the processors, and whether
// these are all taken. It is a leaf: it imports nothing of airlock.
package lull

import (
	"sync"
	"time"
)

const (
	// young is how long something that has begun is taken for something that ends soon: a short command takes that long
	// where several begin at once. What goes on for longer is waited for no more.
	young = 30 * time.Millisecond
	// answer is left to what has ended to say so.
	answer = 10 * time.Millisecond
	// longest bounds the wait while things begin and end.
	longest = 100 * time.Millisecond
	// patience bounds the wait while what goes on has all processors: for what computes longer than that, a few milliseconds
	// of a processor are little. From then on it holds up nothing.
	patience = time.Second
	// lookInterval is the time between two looks at the processors.
	lookInterval = 10 * time.Millisecond
)

var (
	mu      sync.Mutex
	going   int
	fresh   int       // of what goes on, what has not for longer than patience
	until   time.Time // there is no lull before
	crowded bool      // what busy reported
	looked  time.Time // when that was
)

// busy reports whether all processors are taken, as far as the system tells.
var busy = processorsBusy

// Begin says that something begins which somebody waits for, and returns what says that it has ended.
func Begin() (end func()) {
	mu.Lock()
	defer mu.Unlock()
	going++
	fresh++
	until = later(until, young)
	aging := time.AfterFunc(patience, func() {
		mu.Lock()
		defer mu.Unlock()
		fresh--
	})
	return func() { ended(aging) }
}

func ended(aging *time.Timer) {
	mu.Lock()
	defer mu.Unlock()
	if aging.Stop() {
		fresh--
	}
	if going--; going == 0 {
		until = time.Time{}
	}
	until = later(until, answer)
}

// later gives the later one of a time and the end of a span that begins now.
func later(t time.Time, span time.Duration) time.Time {
	if end := time.Now().Add(span); end.After(t) {
		return end
	}
	return t
}

// Await returns in the next lull, or when it is too long in coming, or when hurry is closed; a nil one never is.
func Await(hurry <-chan struct{}) {
	for began := time.Now(); ; {
		left := remaining(began)
		if left <= 0 {
			return
		}
		select {
		case <-time.After(left):
		case <-hurry:
			return
		}
	}
}

// remaining is how long a caller that has waited since then must wait before it asks again; 0 or less if it need not any more.
func remaining(since time.Time) time.Duration {
	mu.Lock()
	defer mu.Unlock()
	if left := min(time.Until(until), time.Until(since.Add(longest))); left > 0 {
		return left
	}
	if fresh == 0 {
		return 0
	}
	if now := time.Now(); now.Sub(looked) >= lookInterval {
		crowded, looked = busy(), now
	}
	if !crowded {
		return 0
	}
	return min(lookInterval, time.Until(since.Add(patience)))
}
