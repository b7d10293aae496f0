package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrClientGone is why [Serve] ends when nobody reads its output any more.
var ErrClientGone = errors.New("the client is gone: its end of the output was closed")

// shutdownWait is how long everything may take that is still to do once Serve is to end. With what
// main does before and after it the server is gone within 3 s.
const shutdownWait = 2700 * time.Millisecond

// flushWait is how long a client that has closed its end of the input may take to read the answers.
const flushWait = 30 * time.Second

// errInputEnded ends the runs of a client that has gone and that were not over in time.
var errInputEnded = errors.New("the client has closed its end of the input")

// Serve has a conversation with the client at the other end of in and out: JSON-RPC messages of MCP,
// one a line. Nothing else is written to out. It is called once for a Server, and leaves nothing of
// it: the Runner is closed.
//
// It ends in one of three ways.
//
//   - in ends. The calls that were read are answered first, those that end within their wait; then the
//     rest is ended, discarded and answered, and so are runs that go on without a call. Serve returns nil.
//   - out has no reader any more. This is noticed at once, without a write, if out is a pipe or a
//     socket. All runs are ended and discarded, and Serve returns [ErrClientGone].
//   - ctx ends. All runs are ended and discarded, their calls are answered if the client still reads,
//     and Serve returns the cause.
//
// In the last two it returns within 3 s, whatever in, out and the runs do. The goroutine that reads
// in may then remain in a Read that does not return; the caller ends the process or closes in.
//
// If out is the standard output of the process, the caller ignores SIGPIPE: it would end the process
// at the write that meets a closed pipe, before the runs are discarded.
func Serve(ctx context.Context, in io.Reader, out io.Writer, s *Server) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	gone := func(err error) { end(fmt.Errorf("%w (%w)", ErrClientGone, err)) }
	box := newOutbox(out, gone)
	defer watchHangup(out, gone)()

	c := newConn(s, box)
	if err := s.mcp.RegisterSession(ctx, c.session); err != nil {
		return fmt.Errorf("bug: a Server serves twice: %w", err)
	}
	defer s.mcp.UnregisterSession(context.WithoutCancel(ctx), c.session.SessionID())

	if s.opts.OpenAhead {
		go s.openAhead(ctx)
	}
	read := make(chan error, 1)
	go func() { read <- c.read(s.mcp.WithContext(ctx, c.session), in) }()
	var err error
	select {
	case err = <-read:
	case <-ctx.Done():
	}
	s.ending.Store(true)
	c.session.hangUp()
	idle := c.drain()
	late := time.AfterFunc(s.opts.Policy.Limits.Wait.Std(), func() { end(errInputEnded) })
	defer late.Stop()
	select {
	case <-idle:
		box.flush(ctx, flushWait)
	case <-ctx.Done(): // ends the runs too, whose contexts are made of ctx
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errInputEnded) {
		err = cause
	}
	return errors.Join(err, s.shutDown(ctx, idle, box))
}

// shutDown waits for what is still going on, as long as it may.
func (s *Server) shutDown(ctx context.Context, idle <-chan struct{}, box *outbox) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWait)
	defer cancel()
	closed := make(chan error, 1)
	go func() {
		select {
		case <-idle:
			closed <- s.close(ctx)
		case <-ctx.Done():
		}
	}()
	var err error
	select {
	case err = <-closed:
	case <-ctx.Done():
		err = fmt.Errorf("runs have not ended after %s", shutdownWait)
	}
	box.flush(ctx, shutdownWait)
	return err
}
