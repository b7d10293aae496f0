package proxy

import (
	"net"
	"testing"
	"time"
)

func TestConnectionLimits(t *testing.T) {
	for _, tt := range []struct{ descriptors, all, each int }{
		{1 << 20, 87381, 2000}, {20000, 1666, 1249}, {1024, 85, 63}, {0, 4, 3},
	} {
		if all, each := connectionLimits(tt.descriptors); all != tt.all || each != tt.each {
			t.Errorf("connectionLimits(%d) = %d, %d; want %d, %d", tt.descriptors, all, each, tt.all, tt.each)
		}
	}
}

// A run that has as many connections as it may have is refused the next one at once, and gets one again
// when another has ended.
func TestConnectionsOfOneRun(t *testing.T) {
	r := serve(t, local("a.test"), nil)
	r.mu.Lock()
	r.gateway.each = 2
	r.mu.Unlock()
	open := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", r.proxy)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	served := func(conn net.Conn) bool {
		t.Helper()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Write([]byte{5, 1, 0}); err != nil {
			return false
		}
		n, _ := conn.Read(make([]byte, 2))
		return n == 2
	}
	first, second := open(), open()
	if !served(first) || !served(second) {
		t.Fatal("the first connections are not served")
	}
	if served(open()) {
		t.Error("one more than may be was served")
	}
	first.Close()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if served(open()) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a connection that ended leaves no place for another")
		}
	}
}
