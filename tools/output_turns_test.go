package tools

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// One output is taken at a time, and where several want to, the server has at least as long for all else.
func TestOutputTurns(t *testing.T) {
	const takes, each = 50, 2 * time.Millisecond
	var turns outputTurns
	var now atomic.Int32
	var all sync.WaitGroup
	begin := time.Now()
	for range 4 {
		all.Go(func() {
			for range takes {
				turns.do(func() {
					if n := now.Add(1); n != 1 {
						t.Errorf("%d outputs are taken at once", n)
					}
					time.Sleep(each)
					now.Add(-1)
				})
			}
		})
	}
	all.Wait()
	// At the end there may be one alone, which need not pause.
	if took, least := time.Since(begin), 4*takes*each+3*takes*each*9/10; took < least {
		t.Errorf("4 outputs took %s, want more than %s", took, least)
	}
}
