package tools

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"airlock/internal/lull"
	"airlock/sandbox"
)

// down is a sandbox whose run has ended, and that notes when it is taken down.
type down struct {
	sandbox.Process
	taken chan time.Time
	err   error
}

func (d down) Wait() (sandbox.Exit, error) {
	d.taken <- time.Now()
	return sandbox.Exit{}, d.err
}

// No run waits for a lull so that another sandbox can be taken down: those that wait for it are taken down then.
func TestTeardownOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer lull.Begin()() // there is no lull for some milliseconds
		taken := make(chan time.Time, maxTeardowns+2)
		began := time.Now()
		d := newTeardown()
		for range maxTeardowns + 1 {
			d.begin(down{taken: taken})
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("a run has waited %v", waited)
		}
		synctest.Wait()
		if len(taken) != maxTeardowns {
			t.Errorf("%d of those before it were taken down at once, want %d", len(taken), maxTeardowns)
		}
		failed := errors.New("failed")
		d.begin(down{taken: taken, err: failed})
		if err := d.wait(); !errors.Is(err, failed) || len(taken) != maxTeardowns+2 || time.Since(began) > 0 {
			t.Errorf("after %v %d were taken down, and %v", time.Since(began), len(taken), err)
		}
		d.begin(down{taken: make(chan time.Time, 1)}) // at once too
		if err := d.wait(); err != nil || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestTeardownAwaitsALull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := lull.Begin()
		taken := make(chan time.Time, 1)
		began := time.Now()
		d := newTeardown()
		d.begin(down{taken: taken})
		synctest.Wait()
		if len(taken) > 0 {
			t.Error("it was taken down at once")
		}
		end()
		if at := <-taken; !at.After(began) {
			t.Error("it was taken down at once")
		}
		if err := d.wait(); err != nil {
			t.Error(err)
		}
	})
}
