// Package lull tells what can be done later when nobody waits for an answer. What follows an answer, as taking down what was of
// a run and beginning what the next one needs, is work for every processor: while runs begin and end one after the other, or
// at once, it would hold up those that somebody waits for.
//
// It knows of times alone, for the whole process, since all of it shares the processors. It is a leaf: it imports
// nothing of airlock.
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
	// longest bounds the wait for a lull.
	longest = 100 * time.Millisecond
)

var (
	mu    sync.Mutex
	going int
	until time.Time // there is no lull before
)

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
	for end := time.Now().Add(longest); ; {
		mu.Lock()
		left := min(time.Until(until), time.Until(end))
		mu.Unlock()
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
