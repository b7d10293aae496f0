package lull

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestRunnable(t *testing.T) {
	for text, want := range map[string]int{
		"0.12 0.30 0.25 3/82 29721\n": 3,
		"0.12 0.30 0.25 12\n":         12,
		"0.00 0.00 0.00 0/0 0\n":      0,
		"0.12 0.30 0.25 x/82 29721\n": 0,
		"0.12 0.30\n":                 0,
		"":                            0,
	} {
		if got := runnable([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// One more thread that computes than there are processors is seen.
func TestProcessorsBusy(t *testing.T) {
	if text, err := os.ReadFile("/proc/loadavg"); err != nil || runnable(text) == 0 {
		t.Skip("the system does not tell: ", err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 2)) // with fewer they would not all run, or the test would not
	var stop atomic.Bool
	defer stop.Store(true)
	for range runtime.NumCPU() + 1 {
		go func() {
			runtime.LockOSThread()
			for !stop.Load() {
			}
		}()
	}
	for deadline := time.Now().Add(10 * time.Second); !processorsBusy(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it was not seen in ten seconds")
		}
	}
}
