package tools

import (
	"errors"
	"fmt"
	"sync"

	"airlock/internal/lull"
	"airlock/sandbox"
)

// teardown takes sandboxes down whose runs have ended, beside whatever comes next. They are empty: what is left of them
// can do nothing any more, and is gone in some milliseconds.
type teardown struct {
	going  sync.WaitGroup
	slots  chan struct{} // one for each that may go on at once
	ending chan struct{} // closed when nothing else is to come
	ended  sync.Once

	mu     sync.Mutex
	failed []error // told to nobody yet
}

// maxTeardowns is how many may go on at once. With more, a run waits for one.
const maxTeardowns = 16

func newTeardown() *teardown {
	return &teardown{slots: make(chan struct{}, maxTeardowns), ending: make(chan struct{})}
}

func (t *teardown) begin(ended sandbox.Process) {
	t.slots <- struct{}{}
	t.going.Go(func() {
		defer func() { <-t.slots }()
		lull.Await(t.ending)
		if _, err := ended.Wait(); err != nil {
			t.mu.Lock()
			t.failed = append(t.failed, err)
			t.mu.Unlock()
		}
	})
}

// failures gives what went wrong since it was last asked.
func (t *teardown) failures() []error {
	t.mu.Lock()
	defer t.mu.Unlock()
	failed := t.failed
	t.failed = nil
	return failed
}

// notes tells the next result of what could not be taken down.
func (t *teardown) notes() (notes []string) {
	for _, err := range t.failures() {
		notes = append(notes, fmt.Sprintf("the sandbox of an earlier run was not taken down as it should be: %v", err))
	}
	return notes
}

// wait returns when all are down, and makes haste.
func (t *teardown) wait() error {
	t.ended.Do(func() { close(t.ending) })
	t.going.Wait()
	return errors.Join(t.failures()...)
}
