package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// headerTimeout is how long a client of the proxy may take to say what it wants.
	headerTimeout = 30 * time.Second
	// maxHeader bounds the head of a request, in bytes.
	maxHeader = 256 << 10
)

// httpServer is the HTTP proxy of a run: CONNECT, and requests in absolute form. Each request of a
// connection is decided for itself, by its target alone: what its Host header says is replaced.
func (s *Session) httpServer() *http.Server {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			host, port, err := splitTarget(addr, 0)
			if err != nil {
				return nil, err
			}
			conn, err := s.dial(ctx, host, port)
			if err != nil {
				return nil, err
			}
			return &trackedConn{Conn: conn, session: s}, nil
		},
		DisableCompression:  true, // bytes arrive as they were sent
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     30 * time.Second,
	}
	silent := log.New(io.Discard, "", 0)
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host = r.In.URL.Host
			// What is said to a proxy is for that proxy. ReverseProxy drops those of the standard.
			for name := range r.Out.Header {
				if strings.HasPrefix(name, "Proxy-") {
					delete(r.Out.Header, name)
				}
			}
		},
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      silent,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { refuse(w, err) },
	}
	return &http.Server{
		// "OPTIONS *" is a question to a server, which would else be answered as by one.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          silent,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodConnect {
				s.tunnel(w, r)
				return
			}
			if err := s.check(r); err != nil {
				s.denials.note(err)
				refuse(w, err)
				return
			}
			forward.ServeHTTP(w, r)
		}),
	}
}

// errNotForProxy is said to a client that takes the proxy for a server.
var errNotForProxy = errors.New("this is a proxy: it takes CONNECT, and requests for http:// addresses in absolute form")

// check judges the target of a request in absolute form, before anything of it is sent.
func (s *Session) check(r *http.Request) error {
	if r.URL.Scheme != "http" && r.URL.Scheme != "ws" || r.URL.Host == "" {
		return errNotForProxy
	}
	r.URL.Scheme, r.URL.User = "http", nil
	host, port, err := splitTarget(r.URL.Host, 80)
	if err != nil {
		return err
	}
	host = s.names.host(host)
	if v := s.gateway.policy.Decide(host, port); !v.Allow {
		return &DeniedError{Host: spelled(host), Port: port, Reason: v.Reason}
	}
	// Decide has found it to be a host; the connection is looked for by this spelling.
	canonical, err := CanonicalHost(host)
	if err != nil {
		return err
	}
	r.URL.Host = net.JoinHostPort(canonical, strconv.Itoa(port))
	if port == 80 {
		r.URL.Host = strings.TrimSuffix(r.URL.Host, ":80")
	}
	return nil
}

// tunnel serves CONNECT.
func (s *Session) tunnel(w http.ResponseWriter, r *http.Request) {
	host, port, err := splitTarget(r.Host, 0)
	if err != nil {
		refuse(w, err)
		return
	}
	server, err := s.dial(r.Context(), host, port)
	if err != nil {
		refuse(w, err)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.untrack(server)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Time{})
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		s.untrack(server)
		return
	}
	s.carry(unwrap(conn, buffered.Reader), server, host, port)
}

// splitTarget reads "host:port". Without a port it is the given one, or an error where that is 0.
func splitTarget(target string, port int) (string, int, error) {
	host, text, err := net.SplitHostPort(target)
	if err != nil {
		if port == 0 || strings.Contains(target, ":") && !strings.HasSuffix(target, "]") {
			return "", 0, badTarget(target)
		}
		return target, port, nil
	}
	if text == "" && port != 0 {
		return host, port, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' {
		return "", 0, badTarget(target)
	}
	return host, int(n), nil
}

// badTarget is a target that names no host and port.
type badTarget string

func (t badTarget) Error() string { return fmt.Sprintf("%.100q is not a host and a port", string(t)) }

// refuse answers a request that can't be served, with the cause in the status line, where the messages
// of most programs have it from, and once more in the body.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	denied := new(DeniedError)
	var timeout net.Error
	switch {
	case errors.As(err, &denied):
		status, err = http.StatusForbidden, fmt.Errorf("airlock: %w", denied)
	case errors.Is(err, errNotForProxy), errors.As(err, new(badTarget)):
		status = http.StatusBadRequest
	case errors.As(err, &timeout) && timeout.Timeout():
		status = http.StatusGatewayTimeout
	}
	reason := printable(toldToRun(err))
	conn, _, hijackErr := http.NewResponseController(w).Hijack()
	if hijackErr != nil {
		http.Error(w, reason, status)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(lingering))
	body := reason + "\n"
	_, err = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, reason, len(body), body)
	if err == nil && closeWrite(conn) == nil {
		// To close while the client still sends would take the answer from it.
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, maxHeader))
	}
}

// lingering bounds how long a client that was refused goes on to be listened to.
const lingering = 2 * time.Second

// printable makes a text one line of ASCII.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, s)
}

// unwrap gives the connection below what the HTTP server was handed, with what was read of it beyond the
// request in front: so that bytes can be moved by the kernel.
func unwrap(conn net.Conn, read interface {
	Buffered() int
	Peek(n int) ([]byte, error)
},
) net.Conn {
	early, _ := read.Peek(read.Buffered())
	held, ok := conn.(*heldConn)
	if !ok {
		return &earlyConn{Conn: conn, early: append([]byte(nil), early...)}
	}
	if len(early) == 0 && len(held.early) == 0 {
		return held.Conn
	}
	return &earlyConn{Conn: held.Conn, early: append([]byte(nil), early...)}
}

// trackedConn is a connection of the HTTP proxy to a destination.
type trackedConn struct {
	net.Conn
	session *Session
}

// Close implements net.Conn.
func (c *trackedConn) Close() error {
	c.session.untrack(c.Conn)
	return nil
}

// CloseWrite ends one direction.
func (c *trackedConn) CloseWrite() error { return closeWrite(c.Conn) }

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
