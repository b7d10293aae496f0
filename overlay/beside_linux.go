package overlay

import (
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"airlock/internal/lull"
)

// beside does what no run has to wait for: it removes what the last one left, and makes the directories of the next, which
// take a filesystem with a journal a fifth of a millisecond each.
type beside struct {
	directories []string // what is made ahead in the directory of a run

	going  sync.WaitGroup
	slots  chan struct{} // one for each thing that may go on at once
	ending chan struct{} // closed when nothing else is to come
	ended  sync.Once

	mu    sync.Mutex
	ahead string // the directory that was made ahead; "" if there is none
	made  int
}

// maxBeside is how many things go on at once. A run that comes when there are as many does its own.
const maxBeside = 16

// do calls f soon, and returns at once; false if f has to be done some other way.
func (b *beside) do(f func()) bool {
	if b == nil {
		return false
	}
	select {
	case b.slots <- struct{}{}:
	default:
		return false
	}
	b.going.Go(func() {
		defer func() { <-b.slots }()
		lull.Await(b.ending)
		f()
	})
	return true
}

// end makes haste, and returns when nothing goes on. It may be called again.
func (b *beside) end() {
	if b == nil {
		return
	}
	b.ended.Do(func() { close(b.ending) })
	b.going.Wait()
}

// makeAhead makes the directory of the next run, unless there is one. Without, that run makes its own, and says what is
// wrong; what a failure leaves goes when the scratch is closed.
func (b *beside) makeAhead(server *tree, mode uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ahead != "" {
		return
	}
	b.made++
	name := "ahead-" + strconv.Itoa(b.made) // no run's: see isRunID
	dir, err := server.mkdir(name, mode)
	if err != nil {
		return
	}
	defer dir.close()
	for _, d := range b.directories {
		sub, err := dir.mkdir(d, 0o700)
		if err != nil {
			return
		}
		sub.close()
	}
	b.ahead = name
}

// take gives the directory that was made ahead to a run.
func (b *beside) take(server *tree, run string) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	name := b.ahead
	b.ahead = ""
	b.mu.Unlock()
	return name != "" && unix.Renameat2(server.fd, name, server.fd, run, unix.RENAME_NOREPLACE) == nil
}
