package tools

import (
	"sync"
	"sync/atomic"
	"time"
)

// outputTurns shares the server's time between the outputs of its runs and all else that it does. What runs
// print is taken by one at a time, and as long as several want to, nothing is taken for as long as the
// last of it took: runs that print as fast as they can then wait for room in their pipes, and what a
// client asks is answered at once. Without it twenty of them keep every thread of the server busy.
//
// A run that prints alone is not slowed down.
type outputTurns struct {
	mu   sync.Mutex
	want atomic.Int32 // how many hold mu or wait for it
}

// maxOutputPause bounds the pause, where the machine is so busy that a moment's work takes long.
const maxOutputPause = 5 * time.Millisecond

// do calls take, which takes some output, when it has its turn.
func (t *outputTurns) do(take func()) {
	t.want.Add(1)
	defer t.want.Add(-1)
	t.mu.Lock()
	defer t.mu.Unlock()
	begin := time.Now()
	take()
	if t.want.Load() > 1 {
		time.Sleep(min(time.Since(begin), maxOutputPause))
	}
}
