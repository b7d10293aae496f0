package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

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
