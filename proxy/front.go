package proxy

import (
	"context"
	"net"
	"sync"
	"time"
)

// front serves the proxy of a run. HTTP and SOCKS5 share a port: the first byte of a SOCKS5 client is
// its version, which no method of HTTP begins with.
func (s *Session) front() func(context.Context, net.Conn) {
	requests := newHandedOver()
	server := s.httpServer()
	s.close = append(s.close, requests.Close, server.Close)
	s.work.Go(func() { _ = server.Serve(requests) }) // it ends with its listener
	return func(ctx context.Context, conn net.Conn) {
		first := make([]byte, 1)
		_ = conn.SetReadDeadline(time.Now().Add(headerTimeout))
		if _, err := conn.Read(first); err != nil {
			return
		}
		_ = conn.SetReadDeadline(time.Time{})
		if first[0] == socksVersion {
			s.socks(ctx, conn)
			return
		}
		held := &heldConn{earlyConn: earlyConn{Conn: conn, early: first}, done: make(chan struct{})}
		if requests.give(held) {
			<-held.done // the connection is this function's to close
		}
	}
}

// heldConn tells its owner when the HTTP server is done with it.
type heldConn struct {
	earlyConn
	once sync.Once
	done chan struct{}
}

// Close implements net.Conn.
func (c *heldConn) Close() error {
	defer c.once.Do(func() { close(c.done) })
	return c.Conn.Close()
}

// handedOver is a listener of connections that were accepted elsewhere.
type handedOver struct {
	conns chan net.Conn
	once  sync.Once
	ended chan struct{}
}

func newHandedOver() *handedOver {
	return &handedOver{conns: make(chan net.Conn), ended: make(chan struct{})}
}

func (l *handedOver) give(conn net.Conn) (taken bool) {
	select {
	case l.conns <- conn:
		return true
	case <-l.ended:
		return false
	}
}

// Accept implements net.Listener.
func (l *handedOver) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *handedOver) Close() error {
	l.once.Do(func() { close(l.ended) })
	return nil
}

// Addr implements net.Listener.
func (l *handedOver) Addr() net.Addr { return &net.TCPAddr{} }
