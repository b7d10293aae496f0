package proxy

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// upstream is the HTTP proxy of the host's network, through which destinations are reached that the
// policy has allowed.
type upstream struct {
	addr   string // "host:port"
	auth   string // the value of Proxy-Authorization, or ""
	byName bool   // it is given names, and resolves them itself
}

// newUpstream reads network.upstream, which was validated; nil if it is "".
func newUpstream(s string) *upstream {
	if s == "" {
		return nil
	}
	rest, byName := strings.CutPrefix(s, "name:")
	u, err := url.Parse(rest)
	if err != nil {
		return nil
	}
	up := &upstream{addr: u.Host, byName: byName}
	if u.User != nil {
		password, _ := u.User.Password()
		up.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	return up
}

// connect opens a tunnel to a destination, "host:port".
func (u *upstream) connect(ctx context.Context, destination string) (net.Conn, error) {
	conn, err := hostDialer().DialContext(ctx, "tcp", u.addr)
	if err != nil {
		return nil, fmt.Errorf("network.upstream: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	tunnel, err := u.tunnel(conn, destination)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("network.upstream: %w", err)
	}
	return tunnel, nil
}

func (u *upstream) tunnel(conn net.Conn, destination string) (net.Conn, error) {
	request := "CONNECT " + destination + " HTTP/1.1\r\nHost: " + destination + "\r\n"
	if u.auth != "" {
		request += "Proxy-Authorization: " + u.auth + "\r\n"
	}
	if _, err := conn.Write([]byte(request + "\r\n")); err != nil {
		return nil, err
	}
	// A proxy that answers without an end is not read without one.
	r := bufio.NewReaderSize(io.LimitReader(conn, maxHeader), 16<<10)
	response, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy answers %q to %s", response.Status, destination)
	}
	if r.Buffered() > 0 {
		early, err := r.Peek(r.Buffered())
		if err != nil {
			return nil, err
		}
		return &earlyConn{Conn: conn, early: append([]byte(nil), early...)}, nil
	}
	return conn, nil
}

// earlyConn is a connection of which the first bytes have been read already.
type earlyConn struct {
	net.Conn
	early []byte
}

func (c *earlyConn) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite ends one direction.
func (c *earlyConn) CloseWrite() error { return closeWrite(c.Conn) }
