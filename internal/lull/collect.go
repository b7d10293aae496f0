package lull

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
)

// collecting is true while a collection waits for its lull.
var collecting atomic.Bool

// Collect has the garbage collected in the next lull, if a quarter of what may be allocated before the next collection has been by then.
// Left to itself a collection comes while runs begin at once, since most is allocated then, and takes a tenth of the processors
// from them. It returns at once.
func Collect() {
	if !collecting.CompareAndSwap(false, true) {
		return
	}
	go func() {
		Await(nil)
		collecting.Store(false)
		if due(heap()) {
			runtime.GC()
		}
	}()
}

// heap reads, in bytes, what the last collection found alive, what there is now, and what there is to be at the end of the next
// one. What the runtime does not tell is 0.
func heap() (alive, now, goal uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/goal:bytes"},
	}
	metrics.Read(samples)
	for i, to := range []*uint64{&alive, &now, &goal} {
		if v := samples[i].Value; v.Kind() == metrics.KindUint64 {
			*to = v.Uint64()
		}
	}
	return alive, now, goal
}

// due reports whether the heap has grown by more than a quarter of what it may grow by. Eight runs at once, and the sandboxes that are
// made after them, take about another quarter, and the runtime begins before its goal: with more than this the next ones could come
// to a collection of their own.
func due(alive, now, goal uint64) bool {
	return now > alive && goal > alive && now-alive > (goal-alive)/4
}
