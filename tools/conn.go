package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// conn is the conversation with one client. One goroutine reads; it answers everything but
// tools/call itself, at once. Each tools/call is a goroutine, but all that fixes its place is done by
// the reader before it looks at the next message: it has its ticket, and it can be cancelled.
type conn struct {
	server  *Server
	out     *outbox
	session *session

	mu       sync.Mutex
	calls    map[string]*openCall // by the key of their id
	size     int                  // bytes of the messages of calls
	active   int                  // calls that have not ended; those that have their result are not in calls
	draining bool                 // no more calls are taken
	idle     chan struct{}        // closed when draining and active is 0
}

// openCall is a tools/call that was not answered.
type openCall struct {
	cancel    context.CancelCauseFunc
	cancelled bool // the client wants no answer
}

// maxOpen is how many bytes the open calls may take together: their messages, and callSize for what
// each of them is besides.
const (
	maxOpen  = 16 * maxMessage
	callSize = 8 << 10
)

// errCancelled is why a call's context ends that the client cancelled.
var errCancelled = errors.New("cancelled by the client")

func newConn(s *Server, out *outbox) *conn {
	s.notices.connect(out.offer)
	return &conn{
		server:  s,
		out:     out,
		session: newSession(out.put, &s.notices),
		calls:   map[string]*openCall{},
		idle:    make(chan struct{}),
	}
}

// read serves messages until the input ends, which is nil, or fails, or ctx ends.
func (c *conn) read(ctx context.Context, in io.Reader) error {
	lines := newLineReader(in, maxMessage)
	for ctx.Err() == nil {
		line, err := lines.next()
		if long := new(longLineError); errors.As(err, &long) {
			if long.isRequest || long.id == nil {
				c.out.put(failure(long.id, mcp.INVALID_REQUEST, long.Error()))
			}
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the client's messages: %w", err)
		}
		c.line(ctx, bytes.TrimSpace(line))
		c.out.throttle(ctx)
	}
	return context.Cause(ctx)
}

// line serves one line: nothing, a message, or a batch of them, as protocol 2025-03-26 has it.
func (c *conn) line(ctx context.Context, line []byte) {
	switch {
	case len(line) == 0:
	case !utf8.Valid(line):
		// Decoding replaces what is not UTF-8, so the id can be found, but the rest must not be used.
		m, _ := readMessage(line)
		c.out.put(failure(m.ID, mcp.PARSE_ERROR, "the message is not valid UTF-8"))
	case !json.Valid(line):
		c.out.put(failure(nil, mcp.PARSE_ERROR, "the message is not valid JSON"))
	case line[0] == '[':
		c.batch(ctx, line)
	default:
		c.message(ctx, line, func(answer []byte) {
			if answer != nil {
				c.out.put(answer)
			}
		})
	}
}

// message serves one message and calls reply exactly once, with nil if there is no answer. It may do
// so later, from another goroutine.
func (c *conn) message(ctx context.Context, raw []byte, reply func(answer []byte)) {
	m, err := readMessage(raw)
	switch {
	case err != nil:
		reply(failure(m.ID, mcp.INVALID_REQUEST, err.Error()))
	case m.isAnswer():
		c.session.answered(m)
		reply(nil)
	case m.isNotification():
		if m.Method == "notifications/cancelled" {
			c.cancel(m.Params)
		} else {
			c.handle(ctx, m, raw)
		}
		reply(nil)
	case m.Method == string(mcp.MethodToolsCall):
		c.call(ctx, m, raw, reply)
	default:
		reply(c.handle(ctx, m, raw))
	}
}

// call starts a tools/call.
func (c *conn) call(ctx context.Context, m message, raw []byte, reply func([]byte)) {
	key, size := idKey(m.ID), len(raw)+callSize
	conversation := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	open := &openCall{cancel: cancel}
	if why := c.open(key, open, size); why != "" {
		cancel(nil)
		reply(failure(m.ID, mcp.INVALID_REQUEST, why))
		return
	}
	this := call{
		ticket: c.server.queue.take(),
		token:  progressToken(m.Params),
		notify: c.out.offer,
		room:   c.out.throttle,

		conversation: conversation,

		failed: new(string),
	}
	ctx = context.WithValue(ctx, callKey{}, this)
	go func() {
		defer c.ended()
		defer this.ticket.callEnded()
		defer cancel(nil)
		answer := c.handle(ctx, m, raw)
		if c.close(key, size) {
			answer = nil
		}
		reply(answer)
	}()
}

// open notes a call that begins. It says why, if it may not.
func (c *conn) open(key string, call *openCall, size int) (why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.draining:
		return "the server is ending"
	case c.calls[key] != nil:
		return "a call with this id has not been answered yet"
	case c.size+size > maxOpen:
		return "too many calls wait for their answer"
	}
	c.calls[key] = call
	c.size += size
	c.active++
	return ""
}

// close notes that a call has its result. From then on it is too late to cancel it.
func (c *conn) close(key string, size int) (cancelled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cancelled = c.calls[key].cancelled
	delete(c.calls, key)
	c.size -= size
	return cancelled
}

// ended notes that nothing is left of a call, and its answer was put.
func (c *conn) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active--
	if c.draining && c.active == 0 {
		close(c.idle)
	}
}

// drain takes no more calls, and returns a channel that is closed when those that are open have
// ended. It is called once.
func (c *conn) drain() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	if c.active == 0 {
		close(c.idle)
	}
	return c.idle
}

// cancel serves notifications/cancelled. An id that is not that of an open call is nothing.
func (c *conn) cancel(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[idKey(p.RequestID)]; call != nil {
		call.cancelled = true
		call.cancel(errCancelled)
	}
}

// handle has mcp-go serve a message, and returns the line that answers it. A handler that panics
// fails its own request only.
//
// mcp-go is given the id as the client wrote it and may change it, as it does beyond 2^53; the answer
// has the client's.
func (c *conn) handle(ctx context.Context, m message, raw []byte) (line []byte) {
	defer func() {
		if r := recover(); r != nil {
			c.server.panicked(m.Method, r)
			line = failure(m.ID, mcp.INTERNAL_ERROR, "internal error; the server's log says more")
		}
	}()
	resp := c.server.mcp.HandleMessage(ctx, raw)
	c.forward()
	if m.isNotification() {
		return nil
	}
	if e, ok := resp.(mcp.JSONRPCError); ok {
		if this, ok := ctx.Value(callKey{}).(call); ok && *this.failed != "" {
			return failure(m.ID, e.Error.Code, *this.failed)
		}
	}
	return answer(m.ID, resp)
}

// forward sends the notifications that mcp-go wants sent, before what comes next.
func (c *conn) forward() {
	for {
		select {
		case n := <-c.session.notifications:
			if line, err := encode(n); err == nil {
				c.out.offer(line)
			}
		default:
			return
		}
	}
}

// progressToken returns the progress token of a request as the client wrote it, or nil.
func progressToken(params json.RawMessage) json.RawMessage {
	var p struct {
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil || idKey(p.Meta.ProgressToken) == "" {
		return nil
	}
	return p.Meta.ProgressToken
}
