package sandbox

import (
	"context"
	"testing"
	"time"
)

// TestCancelWhileItStarts ends a run's context at every stage of its start. Each Start or Wait has to come
// back at once, whatever stage it hit: none may wait for a word from an init that is gone.
func TestCancelWhileItStarts(t *testing.T) { onEach(t, testCancelWhileItStarts) }

func testCancelWhileItStarts(t *testing.T, n Backend) {
	for delay := time.Duration(0); delay < 40*time.Millisecond; delay += time.Millisecond {
		ctx, cancel := context.WithCancel(t.Context())
		stop := time.AfterFunc(delay, cancel)
		ended := make(chan error, 1)
		go func() {
			p, err := n.Start(ctx, testSpec(t, "sleep", "60"), Stdio{})
			if err == nil {
				_, err = p.Wait()
			}
			ended <- err
		}()
		select {
		case <-ended: // cancelled early it is an error, later an Exit
		case <-time.After(5 * time.Second):
			t.Fatalf("cancelled after %s, the run has not ended in 5 s", delay)
		}
		stop.Stop()
		cancel()
	}
}
