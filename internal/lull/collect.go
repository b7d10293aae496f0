package lull

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
)

// collecting is true while a collection waits for its lull.
var collecting atomic.Bool

// Collect has garbage collected in the next lull, if half of what may be allocated until the next collection has been: it
// would come while runs begin at once, when most is allocated, and take a tenth of the processors from them. It returns at once.
func Collect() {
	if !collecting.CompareAndSwap(false, true) {
		return
	}
	go func() {
		Await(nil)
		collecting.Store(false)
		if halfway(heap()) {
			runtime.GC()
		}
	}()
}

// heap reads, in bytes, what was alive at the end of the last collection, what there is now, and what there will be at the
// begin of the next one.
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

func halfway(alive, now, goal uint64) bool {
	return now > alive && goal > alive && now-alive > (goal-alive)/2
}
