package proxy

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

// What is allowed and can't be connected to is remembered with the network's word, by whatever way it was tried; what is
// refused is not, and what was reached once is no more.
func TestUnreached(t *testing.T) {
	c := local("dead.test", "there.test")
	c.Allow = append(c.Allow, "nowhere.test")
	s := serve(t, c, func(context.Context, string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "no such name here", Name: "nowhere.test.", Server: "192.0.2.53:53"}
	})
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := portOf(t, "http://"+free.Addr().String())
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	client := s.client(t)
	for _, url := range []string{
		"http://dead.test:" + strconv.Itoa(dead) + "/", "https://dead.test:" + strconv.Itoa(dead) + "/", "https://nowhere.test/",
		"http://refused.test/", "http://there.test:" + strconv.Itoa(portOf(t, web.URL)) + "/",
	} {
		if r, err := client.Get(url); err == nil {
			r.Body.Close()
		}
	}
	if _, err := client.Get("https://nowhere.test/"); err == nil || strings.Contains(err.Error(), "192.0.2.53") {
		t.Errorf("the run is told %v, want nothing of the host's name server", err)
	}
	got := s.Unreached()
	if len(got) != 2 || got[0].Host != "dead.test" || got[0].Port != dead || got[1].Host != "nowhere.test" || got[1].Port != 443 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []string{"connection refused", "nowhere.test:443 could not be reached: no such name here\n"} {
		if text := got[i].Error() + "\n"; !strings.Contains(text, want) {
			t.Errorf("%s, want %q", text, want)
		}
	}
	again, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(dead))
	if err != nil {
		t.Skip("the port is somebody else's by now: ", err)
	}
	defer again.Close()
	conn, err := s.dial(t.Context(), "dead.test", dead)
	if err != nil {
		t.Fatal(err)
	}
	s.untrack(conn)
	if got := s.Unreached(); len(got) != 1 || got[0].Host != "nowhere.test" {
		t.Errorf("after one was reached: %+v", got)
	}
}
