package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

func TestWithoutPlainRequests(t *testing.T) {
	ssl, gss := plainRequests[0], plainRequests[1]
	for name, tt := range map[string]struct {
		b    []byte
		n    int
		more bool
		err  error
	}{
		"nothing":       {nil, 0, true, nil},
		"a zero":        {[]byte{0}, 1, true, nil},
		"half":          {ssl[:7], 7, true, nil},
		"whole":         {ssl, 8, true, nil},
		"and half":      {slices.Concat(gss, ssl[:3]), 11, true, nil},
		"both, and TLS": {slices.Concat(gss, ssl, []byte{22}), 16, false, nil},
		"a start":       {[]byte{0, 0, 0, 8, 0, 3, 0, 0}, 0, false, nil},
		"another one":   {[]byte{0, 0, 0, 8, 4, 210, 22, 46}, 0, false, nil}, // CancelRequest has a length of its own
		"HTTP":          {[]byte("GET / HTTP/1.1\r\n"), 0, false, nil},
		"many":          {bytes.Repeat(gss, maxPlainRequests-1), 8 * (maxPlainRequests - 1), true, nil},
		"too many":      {bytes.Repeat(gss, maxPlainRequests), 0, false, errNotHello},
	} {
		if n, more, err := withoutPlainRequests(tt.b); n != tt.n || more != tt.more || !errors.Is(err, tt.err) {
			t.Errorf("%s: %d, %t, %v; want %d, %t, %v", name, n, more, err, tt.n, tt.more, tt.err)
		}
	}
}

// The server name is compared when TLS begins after PostgreSQL's request for it, in whatever pieces that comes, and what goes
// before arrives at once: the server answers each request with one byte, and the client waits for that.
func TestPlainRequestsAreSeenThrough(t *testing.T) {
	ssl, gss := plainRequests[0], plainRequests[1]
	other, named := hello(t, &tls.Config{ServerName: "b.test"}), hello(t, &tls.Config{ServerName: "a.test"})
	const refused = "a.test:5432 TLS asks for another host there, b.test"
	for name, tt := range map[string]struct {
		sent   [][]byte // after each but the last, the server's answer of a byte is waited for
		got    []byte   // by the server
		denied []string
	}{
		"the host":                 {[][]byte{ssl, named}, slices.Concat(ssl, named), nil},
		"another":                  {[][]byte{ssl, other}, ssl, []string{refused}},
		"another, behind both":     {[][]byte{gss, ssl, other}, slices.Concat(gss, ssl), []string{refused}},
		"another, in pieces":       {[][]byte{ssl[:1], ssl[1:7], ssl[7:], other}, ssl, []string{refused}},
		"another, without waiting": {[][]byte{slices.Concat(ssl, other)}, nil, []string{refused}},
		"another, behind many": {
			[][]byte{bytes.Repeat(gss, maxPlainRequests), other},
			nil,
			[]string{"a.test:5432 " + errNotHello.Error()},
		},
		"declined":          {[][]byte{ssl, {0, 0, 0, 9, 0, 3, 0, 0, 0}}, slices.Concat(ssl, []byte{0, 0, 0, 9, 0, 3, 0, 0, 0}), nil},
		"the same to begin": {[][]byte{{0}, {0, 0}, []byte("otherwise")}, []byte("\x00\x00\x00otherwise"), nil},
		"it alone":          {[][]byte{ssl}, ssl, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, local("a.test"), nil)
			client, clientEnd := tcpPair(t)
			server, serverEnd := tcpPair(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				r.denials.note(relay(clientEnd, serverEnd, func(first []byte) (int, error) { return r.checkName(first, "a.test", 5432) }))
			}()
			arrived := make(chan []byte)
			go func() {
				var all []byte
				for {
					b := make([]byte, 64<<10)
					n, err := server.Read(b)
					all = append(all, b[:n]...)
					if err != nil {
						server.Close()
						arrived <- all
						return
					}
					_, _ = server.Write([]byte("S"))
				}
			}()
			for i, piece := range tt.sent {
				_, _ = client.Write(piece)
				if i == len(tt.sent)-1 {
					_ = client.CloseWrite()
					break
				}
				if _, err := client.Read(make([]byte, 1)); err != nil {
					break // refused
				}
			}
			_, _ = io.Copy(io.Discard, client)
			if got := <-arrived; !bytes.Equal(got, tt.got) {
				t.Errorf("the server got %d bytes, %x…, want %d", len(got), got[:min(20, len(got))], len(tt.got))
			}
			<-done
			r.wantDenied(t, tt.denied...)
		})
	}
}

// tcpPair is both ends of a connection, which end with the test, or after a while.
func tcpPair(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	one, err1 := net.Dial("tcp", l.Addr().String())
	other, err2 := l.Accept()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for _, conn := range []net.Conn{one, other} {
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		t.Cleanup(func() { conn.Close() })
	}
	return one.(*net.TCPConn), other.(*net.TCPConn)
}
