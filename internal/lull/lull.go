// Package lull tells what can be done later when nobody waits for an answer. What follows an answer, as taking down what was of
// a run and beginning what the next one needs, is work for every processor: while runs begin and end one after the other, or
// at once, it would hold up those that somebody waits for.
//
// It knows when what is waited for has begun and ended, for the whole process, since all of it shares the processors, and whether
// these are busy. It is a leaf: it imports nothing of airlock.
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
	// longest bounds the wait for a lull, and patience the wait while what goes on has all processors: who computes for longer has
	// them back soon enough.
	longest  = 100 * time.Millisecond
	patience = time.Second
	// lookInterval is the time between two looks at the processors.
	lookInterval = 10 * time.Millisecond
)

var (
	mu      sync.Mutex
	going   int
	until   time.Time // there is no lull before
	crowded bool      // there was nothing to spare of the processors
	looked  time.Time // when that was
)

// busy reports whether no processor has anything to spare, as far as the system tells.
var busy = processorsBusy

// Begin says that something begins which somebody waits for, and returns what says that it has ended.
func Begin() (end func()) {
	mu.Lock()
	defer mu.Unlock()
	going++
	until = later(until, young)
	return ended
}

func ended() {
	mu.Lock()
	defer mu.Unlock()
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

// remaining is how long there is no lull for who has waited since then; it may be longer afterwards.
func remaining(since time.Time) time.Duration {
	mu.Lock()
	defer mu.Unlock()
	if left := min(time.Until(until), time.Until(since.Add(longest))); left > 0 {
		return left
	}
	if going == 0 {
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
