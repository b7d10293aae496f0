package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"
)

// run is the network of a run in a test: a session whose proxy and resolver are reached on loopback.
type run struct {
	*Session
	proxy    string // host:port
	resolver string
}

// serve starts a session whose names resolve by lookup; nil is a lookup that fails the test.
func serve(t *testing.T, c Config, lookup Lookup) run {
	t.Helper()
	if lookup == nil {
		lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
			t.Errorf("%q was looked up", host)
			return nil, errors.New("no lookup")
		}
	}
	g, err := NewGateway(c, lookup)
	if err != nil {
		t.Fatal(err)
	}
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	front, stream := listen(), listen()
	queries, err := net.ListenPacket("udp", stream.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := g.Serve(Listeners{Proxy: front, Queries: queries, QueryStream: stream})
	t.Cleanup(s.Close)
	return run{s, front.Addr().String(), stream.Addr().String()}
}

// local is a policy that allows names, which lead to loopback.
func local(names ...string) Config {
	c := Config{Mode: "allowlist", Private: []string{"127.0.0.1/32"}, Resolve: map[string]string{}}
	for _, name := range names {
		c.Allow = append(c.Allow, name+":*")
		c.Resolve[name] = "127.0.0.1"
	}
	return c
}

func (r run) client(t *testing.T) *http.Client {
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: r.proxy})}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (r run) wantDenied(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	list, more := r.Denied()
	for _, d := range list {
		got = append(got, d.Destination()+" "+d.Reason)
	}
	if !slices.Equal(got, want) || more != 0 {
		t.Errorf("denied %q and %d more, want %q", got, more, want)
	}
}

// The end of a run is the end of its connections, whatever they are doing.
func TestCloseEndsTransfers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	r := serve(t, local("a.test"), nil)
	response, err := r.client(t).Get(fmt.Sprintf("http://a.test:%d/", portOf(t, server.URL)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.CopyN(io.Discard, response.Body, 1<<20); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() { r.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Fatal("the session does not end")
	}
	if _, err := io.Copy(io.Discard, response.Body); err == nil {
		t.Error("the transfer came to a good end")
	}
}
