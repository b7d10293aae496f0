package proxy

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
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

func TestHTTPForward(t *testing.T) {
	var seen http.Header
	var host string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, host = r.Header.Clone(), r.Host
		w.Header().Set("Keep-Me", "yes")
		fmt.Fprint(w, "hello")
	}))
	defer server.Close()
	port := portOf(t, server.URL)
	r := serve(t, local("a.test"), nil)

	conn, err := net.Dial("tcp", r.proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	ask := func(target, extra string) *http.Response {
		t.Helper()
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: other.test\r\nUser-Agent: probe\r\n%s\r\n", target, extra)
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	// The target decides, and the server learns that and not the Host that the client made up.
	target := fmt.Sprintf("http://a.test:%d/x", port)
	response := ask(target, "Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Odd: x\r\nConnection: X-Hop\r\nX-Hop: y\r\nX-Stays: z\r\n")
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != 200 || string(body) != "hello" || response.Header.Get("Keep-Me") != "yes" {
		t.Errorf("status %s, body %q", response.Status, body)
	}
	if want := fmt.Sprintf("a.test:%d", port); host != want {
		t.Errorf("the server was asked for the host %q, want %q", host, want)
	}
	for _, name := range []string{"Proxy-Authorization", "Proxy-Odd", "X-Hop", "X-Forwarded-For", "Via"} {
		if _, there := seen[name]; there {
			t.Errorf("the server saw %s", name)
		}
	}
	if seen.Get("X-Stays") != "z" || seen.Get("User-Agent") != "probe" {
		t.Errorf("the server saw %v", seen)
	}
	// The connection goes on, and the next request is decided for itself.
	response = ask("http://a.test.evil.test/", "")
	if response.StatusCode != 403 || !strings.Contains(response.Status, "not in network.allow") {
		t.Errorf("status %q", response.Status)
	}
	r.wantDenied(t, "a.test.evil.test:80 not in network.allow")
}

func TestHTTPTargets(t *testing.T) {
	r := serve(t, local("a.test"), nil)
	for _, tt := range []struct {
		request string
		status  int
	}{
		{"GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 403},
		{"GET http://a.test@b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 403},
		{"GET http://127.0.0.1:9/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 403},
		{"GET http://a.test:0443/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 502},
		{"GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
		{"GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
		{"GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
		{"CONNECT b.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", 403},
		{"CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n", 502},
		{"CONNECT a.test:0443 HTTP/1.1\r\nHost: a.test\r\n\r\n", 502},
		{"CONNECT a.test%00.evil.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
		{"CONNECT a.test:99999 HTTP/1.1\r\nHost: a.test\r\n\r\n", 502},
	} {
		conn, err := net.Dial("tcp", r.proxy)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(conn, tt.request)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode != tt.status {
			t.Errorf("%q: %v, %v; want the status %d", tt.request, response, err, tt.status)
		}
		conn.Close()
	}
}

func TestConnectComparesServerName(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secret") }))
	defer server.Close()
	port := portOf(t, server.URL)
	r := serve(t, local("a.test", "b.test"), nil)
	for _, tt := range []struct {
		name string // the server name that TLS asks for
		ok   bool
	}{
		{"a.test", true}, {"A.TEST", true}, {"", true}, {"b.test", false}, {"evil.test", false},
	} {
		conn, err := net.Dial("tcp", r.proxy)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "CONNECT a.test:%d HTTP/1.1\r\nHost: a.test\r\n\r\n", port)
		if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || response.StatusCode != 200 {
			t.Fatal(response, err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		c := tls.Client(conn, &tls.Config{ServerName: tt.name, InsecureSkipVerify: true})
		if err := c.Handshake(); (err == nil) != tt.ok {
			t.Errorf("the server name %q: %v", tt.name, err)
		}
		conn.Close()
	}
	list, _ := r.Denied()
	if len(list) != 1 || list[0].Reason != `TLS asks for another host there, b.test` {
		t.Errorf("denied: %v", list)
	}
}

func TestSOCKS(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	port := portOf(t, server.URL)
	r := serve(t, local("a.test"), nil)
	for _, tt := range []struct {
		host string
		port int
		code byte
	}{
		{"a.test", port, socksDone}, {"b.test", port, socksNotAllowed}, {"a.test", 1, socksRefused}, {"a b", port, socksNotAllowed},
	} {
		conn, err := net.Dial("tcp", r.proxy)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		request := append([]byte{5, 1, 0, 5, 1, 0, 3, byte(len(tt.host))}, tt.host...)
		_, _ = conn.Write(append(request, byte(tt.port>>8), byte(tt.port)))
		answer := make([]byte, 12)
		if _, err := io.ReadFull(conn, answer); err != nil || answer[3] != tt.code {
			t.Errorf("%s:%d: %v, %v; want the code %d", tt.host, tt.port, answer, err, tt.code)
		}
		if tt.code == socksDone {
			fmt.Fprintf(conn, "GET / HTTP/1.0\r\n\r\n")
			if body, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(body), "hello") {
				t.Errorf("%q, %v", body, err)
			}
		}
		conn.Close()
	}
}

// A name that leads somewhere else at each look is dialled where it led when it was judged.
func TestResolvedOnceAndJudged(t *testing.T) {
	var lookups int
	public := netip.MustParseAddr("93.184.216.34")
	d := &dialer{
		policy: policyOf(t, Config{Mode: "allow"}), own: func() []netip.Addr { return nil },
		lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			lookups++
			if host != "rebind.test." {
				t.Errorf("looked up %q", host)
			}
			if lookups > 1 {
				return []netip.Addr{netip.MustParseAddr("10.0.0.5")}, nil
			}
			return []netip.Addr{
				netip.MustParseAddr("::ffff:169.254.169.254"), public, netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("64:ff9b::a00:5"),
			}, nil
		},
	}
	var dialled []string
	d.connect = func(_ context.Context, addr netip.AddrPort) (net.Conn, error) {
		dialled = append(dialled, addr.String())
		return nil, errors.New("refused")
	}
	if _, err := d.dial(context.Background(), "rebind.test", 443); err == nil || err.Error() != "refused" {
		t.Errorf("the first dial: %v", err)
	}
	_, err := d.dial(context.Background(), "rebind.test", 443)
	denied := new(DeniedError)
	if !errors.As(err, &denied) || denied.Reason != "10.0.0.5 is private, and network.private does not name it" {
		t.Errorf("the second dial: %v", err)
	}
	if !slices.Equal(dialled, []string{"93.184.216.34:443"}) || lookups != 2 {
		t.Errorf("dialled %v after %d lookups", dialled, lookups)
	}
}

// An address that does not answer keeps nobody waiting for one that does.
func TestDeadFamily(t *testing.T) {
	start := time.Now()
	conn, err := race(context.Background(), interleave([]netip.Addr{
		netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"),
	}), 443, func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
		if addr.Addr().Is4() {
			c, _ := net.Pipe()
			return c, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

func (r run) ask(t *testing.T, network, name string, kind dnsmessage.Type) dnsmessage.Message {
	t.Helper()
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial(network, r.resolver)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	answer := make([]byte, 512)
	if network == "tcp" {
		_, _ = conn.Write(append([]byte{byte(len(packed) >> 8), byte(len(packed))}, packed...))
		if _, err := io.ReadFull(conn, answer[:2]); err != nil {
			t.Fatal(err)
		}
	} else {
		_, _ = conn.Write(packed)
	}
	n, err := conn.Read(answer)
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(answer[:n]); err != nil {
		t.Fatal(err)
	}
	if m.ID != 7 || !m.Response || len(m.Questions) != 1 {
		t.Errorf("answer %v", m.GoString())
	}
	return m
}

func TestResolver(t *testing.T) {
	r := serve(t, Config{Mode: "allowlist", Allow: []string{"a.test", "*.b.test:5432"}}, nil)
	for _, tt := range []struct {
		network, name string
		kind          dnsmessage.Type
		code          dnsmessage.RCode
		answer        string
	}{
		{"udp", "a.test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "198.18.1.0"},
		{"tcp", "A.Test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "198.18.1.0"},
		{"udp", "x.b.test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "198.18.1.1"},
		{"udp", "a.test.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, ""},
		{"udp", "a.test.", dnsmessage.TypeHTTPS, dnsmessage.RCodeSuccess, ""},
		{"udp", "b.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		{"udp", "secret-data.evil.test.", dnsmessage.TypeTXT, dnsmessage.RCodeNameError, ""},
		{"udp", "0.1.18.198.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeSuccess, "a.test."},
		{"udp", "1.0.0.127.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, ""},
		{"udp", "127.0.0.1.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
	} {
		m := r.ask(t, tt.network, tt.name, tt.kind)
		got := ""
		for _, a := range m.Answers {
			switch body := a.Body.(type) {
			case *dnsmessage.AResource:
				got = netip.AddrFrom4(body.A).String()
			case *dnsmessage.PTRResource:
				got = body.PTR.String()
			}
		}
		if m.RCode != tt.code || got != tt.answer {
			t.Errorf("%s %s: %v %q, want %v %q", tt.name, tt.kind, m.RCode, got, tt.code, tt.answer)
		}
	}
	r.wantDenied(t, "b.test not in network.allow", "secret-data.evil.test not in network.allow")
}

// Each direction ends by itself, and every byte arrives, both ways at once.
func TestRelayBytes(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	const size = 20 << 20
	sent := make([]byte, size)
	_, _ = rand.Read(sent)
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() { // answers only after the client has ended its direction
				defer conn.Close()
				h := sha256.New()
				_, _ = io.Copy(h, conn)
				_, _ = io.WriteString(conn, hex.EncodeToString(h.Sum(nil)))
				_, _ = conn.Write(sent)
			}()
		}
	}()
	sum := sha256.Sum256(sent)
	want := hex.EncodeToString(sum[:]) + string(sent)
	before := runtime.NumGoroutine()
	r := serve(t, local("a.test"), nil)
	conn, err := net.Dial("tcp", r.proxy)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "CONNECT a.test:%d HTTP/1.1\r\nHost: x\r\n\r\n", server.Addr().(*net.TCPAddr).Port)
	in := bufio.NewReader(conn)
	if response, err := http.ReadResponse(in, nil); err != nil || response.StatusCode != 200 {
		t.Fatal(response, err)
	}
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(in)
	if err != nil || string(got) != want {
		t.Errorf("%d bytes of %d arrived as they were sent: %t, %v", len(got), len(want), string(got) == want, err)
	}
	conn.Close()
	r.Close()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines are left, %d were there before", n, before)
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

func TestUpstream(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	port := portOf(t, server.URL)
	var asked []string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		_ = relay(client, conn, nil)
	}))
	defer upstream.Close()
	for _, tt := range []struct{ form, want string }{
		{"http://u:p@%s", fmt.Sprintf("CONNECT 127.0.0.1:%d Basic dTpw", port)},
		{"name:http://%s", fmt.Sprintf("CONNECT a.test:%d ", port)},
	} {
		asked = nil
		c := local("a.test")
		c.Upstream = fmt.Sprintf(tt.form, upstream.Listener.Addr())
		response, err := serve(t, c, nil).client(t).Get(fmt.Sprintf("http://a.test:%d/", port))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if string(body) != "hello" || !slices.Equal(asked, []string{tt.want}) {
			t.Errorf("%s: %q, and the upstream was asked %q, want %q", tt.form, body, asked, tt.want)
		}
	}
}
