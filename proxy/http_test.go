package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

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
		{"GET http://a.test:0443/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
		{"GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
		{"GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
		{"GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
		{"CONNECT b.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", 403},
		{"CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
		{"CONNECT a.test:0443 HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
		{"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
		{"CONNECT a.test%00.evil.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
		{"CONNECT a.test:99999 HTTP/1.1\r\nHost: a.test\r\n\r\n", 400},
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
	for _, tt := range []struct {
		name string // the server name that TLS asks for
		ok   bool
	}{
		{"a.test", true}, {"A.TEST", true}, {"", true}, {"b.test", false}, {"evil.test", false},
	} {
		r := serve(t, local("a.test", "b.test"), nil)
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
		r.Close() // what was refused is noted by then
		var want []string
		if !tt.ok {
			want = []string{fmt.Sprintf("a.test:%d TLS asks for another host there, %s", port, tt.name)}
		}
		r.wantDenied(t, want...)
	}
}
