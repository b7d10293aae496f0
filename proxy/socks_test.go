package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

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
