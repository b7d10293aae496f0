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

	mu     sync.Mutex
	ahead  []string // the directories that were made ahead
	size   int      // how many there are to be; 0 is 1
	making bool     // somebody makes them
	made   int      // how many were ever begun, which numbers them
}

const (
	// maxBeside is how many things go on at once. A run that comes when there are as many does its own.
	maxBeside = 16
	// maxAhead is how many directories are made ahead at most, where runs come at once.
	maxAhead = 8
)

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

// makeAhead makes the directories of the next runs, unless they are there. Without, a run makes its own, and says what is
// wrong; what a failure leaves goes when the scratch is closed.
func (b *beside) makeAhead(server *tree, mode uint32) {
	for {
		name := b.nextAhead()
		if name == "" {
			return
		}
		err := b.makeRun(server, name, mode)
		b.mu.Lock()
		b.making = false
		if err == nil {
			b.ahead = append(b.ahead, name)
		}
		b.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// nextAhead gives the name of a directory that is to be made; "" if none is missing, or if somebody else makes them, who will make
// this one too.
func (b *beside) nextAhead() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.making || len(b.ahead) >= max(b.size, 1) {
		return ""
	}
	b.making = true
	b.made++
	return "ahead-" + strconv.Itoa(b.made) // no run's: see isRunID
}

func (b *beside) makeRun(server *tree, name string, mode uint32) error {
	dir, err := server.mkdir(name, mode)
	if err != nil {
		return err
	}
	defer dir.close()
	for _, d := range b.directories {
		sub, err := dir.mkdir(d, 0o700)
		if err != nil {
			return err
		}
		sub.close()
	}
	return nil
}

// take gives a directory that was made ahead to a run. If there is none, one more is kept from now on.
func (b *beside) take(server *tree, run string) bool {
	if b == nil {
		return false
	}
	name, ok := b.pop()
	return ok && unix.Renameat2(server.fd, name, server.fd, run, unix.RENAME_NOREPLACE) == nil
}

func (b *beside) pop() (name string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ahead) == 0 {
		b.size = min(max(b.size, 1)+1, maxAhead)
		return "", false
	}
	last := len(b.ahead) - 1
	name, b.ahead = b.ahead[last], b.ahead[:last]
	return name, true
}
