package tools

import (
	"context"
	"io"
	"sync"
	"time"
)

// outbox writes lines to the client, whole and in the order in which they were put, from one
// goroutine. Putting a line never blocks, so a client that does not read cannot hold up a run, a
// cancellation, or the answers' own order; what makes the number of lines grow, the reader of
// requests, waits in throttle until the client has caught up.
type outbox struct {
	w      io.Writer
	failed func(error) // called once, when a write fails

	mu     sync.Mutex
	change sync.Cond // lines, closed or err changed
	lines  [][]byte
	size   int // bytes in lines and in the write that goes on
	closed bool
	err    error
	done   chan struct{} // closed when nothing is written any more
}

const (
	// throttleSize is how many bytes may wait before no more requests are read.
	throttleSize = 8 << 20
	// dropSize is how many bytes may wait before notifications are dropped.
	dropSize = 1 << 20
	// writeSize is about how much is written at once.
	writeSize = 64 << 10
)

// newOutbox starts the goroutine that writes to w. It ends after flush, when everything is written
// or w fails.
func newOutbox(w io.Writer, failed func(error)) *outbox {
	b := &outbox{w: w, failed: failed, done: make(chan struct{})}
	b.change.L = &b.mu
	go b.write()
	return b
}

// put adds a line, without its newline.
func (b *outbox) put(line []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(line)
}

// offer adds a line, or drops it if the client does not keep up.
func (b *outbox) offer(line []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size < dropSize {
		b.add(line)
	}
}

func (b *outbox) add(line []byte) {
	if b.closed || b.err != nil {
		return
	}
	b.lines = append(b.lines, line)
	b.size += len(line) + 1
	b.change.Broadcast()
}

// throttle waits while the client is far behind.
func (b *outbox) throttle(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size <= throttleSize {
		return
	}
	defer context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.change.Broadcast()
	})()
	for b.size > throttleSize && b.err == nil && ctx.Err() == nil {
		b.change.Wait()
	}
}

// flush lets no more lines in, and waits until those that are there are written, w has failed, ctx
// has ended or the time is over.
func (b *outbox) flush(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	b.mu.Lock()
	b.closed = true
	b.change.Broadcast()
	b.mu.Unlock()
	select {
	case <-b.done:
	case <-ctx.Done():
	}
}

func (b *outbox) write() {
	defer close(b.done)
	for {
		chunk := b.next()
		if chunk == nil {
			return
		}
		_, err := b.w.Write(chunk)
		b.mu.Lock()
		b.size -= len(chunk)
		b.err = err
		b.change.Broadcast()
		b.mu.Unlock()
		if err != nil {
			b.failed(err)
			return
		}
	}
}

// next takes the lines of one write; nil at the end.
func (b *outbox) next() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.lines) == 0 {
		if b.closed {
			return nil
		}
		b.change.Wait()
	}
	var chunk []byte
	n := 0
	for n < len(b.lines) && (n == 0 || len(chunk)+len(b.lines[n]) < writeSize) {
		chunk = append(append(chunk, b.lines[n]...), '\n')
		n++
	}
	clear(b.lines[:n]) // lets go of what was written
	b.lines = b.lines[n:]
	return chunk
}
