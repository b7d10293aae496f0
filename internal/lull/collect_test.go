package lull

import (
	"runtime"
	"testing"
	"time"
)

func TestDue(t *testing.T) {
	for _, test := range []struct {
		name             string
		alive, now, goal uint64
		want             bool
	}{
		{"nothing was allocated", 10, 10, 20, false},
		{"a quarter", 20, 25, 40, false},
		{"more than a quarter", 20, 26, 40, true},
		{"beyond the goal", 10, 30, 20, true},
		{"no collection yet", 0, 2, 4, true},
		{"there is less than was alive", 10, 5, 20, false},
		{"no goal", 10, 15, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := due(test.alive, test.now, test.goal); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

var kept []byte

func TestCollect(t *testing.T) {
	runtime.GC()
	collections := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumGC
	}
	wait := func(before uint32, span time.Duration) (came bool) {
		for deadline := time.Now().Add(span); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if collections() > before {
				return true
			}
		}
		return false
	}
	before := collections()
	Collect()
	if wait(before, longest) {
		t.Error("it has collected although nothing was allocated")
	}
	alive, _, goal := heap()
	if goal <= alive {
		t.Fatalf("the heap's goal is %d bytes, and %d are alive", goal, alive)
	}
	kept = make([]byte, (goal-alive)*5/8) // with 45/64 (runtime/mgcpacer.go) a collection could begin by itself
	before = collections()
	Collect()
	if !wait(before, 10*time.Second) {
		t.Error("it has not collected")
	}
	runtime.KeepAlive(kept)
}
