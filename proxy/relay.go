package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// relay copies both ways between a run's connection and the destination's until both have ended, and
// closes both. Each direction ends by itself, as TCP's do: who has sent all that it has may go on to
// read. check, if not nil, sees the first bytes of the client before any of them goes on; it returns
// errIncomplete to see more of them, and any other error ends the connection. relay returns that error.
// Together with errIncomplete it says how many of these bytes can go on before.
//
// No more than one buffer a direction is held here: a reader that is slow slows its writer down.
func relay(client, server net.Conn, check func(first []byte) (pass int, err error)) error {
	r := &relaying{client: client, server: server}
	var refused error
	var directions sync.WaitGroup
	directions.Go(func() {
		if check != nil {
			if refused = introduce(client, server, check); refused != nil {
				r.abort()
				return
			}
		}
		r.pass(server, client)
	})
	directions.Go(func() { r.pass(client, server) })
	directions.Wait()
	if r.failed.Load() {
		// What the destination sent before its end is the run's all the same.
		waitSent(client, lastWords)
		reset(client)
	}
	client.Close()
	server.Close()
	return refused
}

// lastWords is how long a run may take to read what a destination sent that then broke off.
const lastWords = 2 * time.Second

// relaying is one connection of a run.
type relaying struct {
	client, server net.Conn
	failed         atomic.Bool
}

// pass copies one direction to its end, and passes the end on.
func (r *relaying) pass(to, from net.Conn) {
	err := moveAll(to, from)
	switch {
	case err == nil:
		_ = closeWrite(to) // an error means that the other side is gone, which its own direction tells
	case broken(r.client):
		r.abort()
	default:
		// The destination broke off. If it is not its own direction that tells, that one ends by it as well, after the last
		// that it had to say. The other one would wait for a client that waits for an answer.
		r.failed.Store(true)
		if from == r.server {
			waitSent(r.client, lastWords)
			r.abort()
		}
	}
}

// moveAll copies one direction, and has the kernel do it where it can: between the sockets themselves.
func moveAll(to, from net.Conn) error {
	if early, ok := from.(*earlyConn); ok {
		from = early.Conn
		if _, err := to.Write(early.early); err != nil {
			return err
		}
	}
	if done, err := splice(below(to), from); done {
		return err
	}
	_, err := io.Copy(below(to), from)
	return err
}

// below is a connection without what has been read of it already.
func below(c net.Conn) net.Conn {
	if early, ok := c.(*earlyConn); ok {
		return early.Conn
	}
	return c
}

// abort ends both connections at once.
func (r *relaying) abort() {
	r.failed.Store(true)
	reset(r.client)
	reset(r.server)
}

// errGone says that a connection ended before its first bytes could be judged.
var errGone = errors.New("the connection ended")

// introduce passes on the first bytes of a client, once check has nothing against them.
func introduce(client, server net.Conn, check func([]byte) (int, error)) error {
	var first []byte
	passed := 0
	pass := func(end int) error {
		if end <= passed {
			return nil
		}
		if _, err := server.Write(first[passed:end]); err != nil {
			return errGone
		}
		passed = end
		return nil
	}
	for {
		buffer := make([]byte, 16<<10)
		n, err := client.Read(buffer)
		first = append(first, buffer[:n]...)
		if n > 0 {
			switch end, verdict := check(first); {
			case verdict == nil:
				return pass(len(first))
			case !errors.Is(verdict, errIncomplete):
				return verdict
			case len(first) > 2*maxHello:
				return errNotHello
			default:
				if err := pass(end); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) {
			// What was begun is not gone on with: it is judged as it is, incomplete.
			if len(first) > passed {
				return errNotHello
			}
			return nil // nothing is held back; the other direction goes on
		}
		if err != nil {
			return errGone
		}
	}
}

// closeWrite ends the direction of a connection that it is written in.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// reset ends a connection so that the other side learns that it did not end well.
func reset(c net.Conn) {
	if tcp, ok := below(c).(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}
