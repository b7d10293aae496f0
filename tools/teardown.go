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
	going sync.WaitGroup
	slots chan struct{} // one for each that may go on at once

	mu     sync.Mutex
	ending bool          // nothing else is to come
	hurry  chan struct{} // closed when those that wait for a lull are to wait no more
	failed []error       // told to nobody yet
}

// maxTeardowns is how many may go on at once. With more, none waits for a lull, and a run waits for one.
const maxTeardowns = 16

func newTeardown() *teardown {
	return &teardown{slots: make(chan struct{}, maxTeardowns), hurry: make(chan struct{})}
}

func (t *teardown) begin(ended sandbox.Process) {
	select {
	case t.slots <- struct{}{}:
	default:
		t.press(false)
		t.slots <- struct{}{}
	}
	t.mu.Lock()
	hurry := t.hurry
	t.mu.Unlock()
	t.going.Go(func() {
		defer func() { <-t.slots }()
		lull.Await(hurry)
		if _, err := ended.Wait(); err != nil {
			t.mu.Lock()
			t.failed = append(t.failed, err)
			t.mu.Unlock()
		}
	})
}

// press has those that wait for a lull wait no more, and, if nothing else is to come, those that begin from now on.
func (t *teardown) press(ending bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending {
		return
	}
	close(t.hurry)
	if t.ending = ending; !ending {
		t.hurry = make(chan struct{})
	}
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
	t.press(true)
	t.going.Wait()
	return errors.Join(t.failures()...)
}
