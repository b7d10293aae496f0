package proxy

import (
	"errors"
	"net"
	"syscall"
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
	// served opens one connection more, and tells whether it is answered. One that is refused may be reset
	// before dialing it has returned.
	served := func() (net.Conn, bool) {
		t.Helper()
		conn, err := net.Dial("tcp", r.proxy)
		if errors.Is(err, syscall.ECONNRESET) {
			return nil, false
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Write([]byte{5, 1, 0}); err != nil {
			return conn, false
		}
		n, _ := conn.Read(make([]byte, 2))
		return conn, n == 2
	}
	first, ok := served()
	if _, second := served(); !ok || !second {
		t.Fatal("the first connections are not served")
	}
	if _, ok := served(); ok {
		t.Error("one more than may be was served")
	}
	first.Close()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, ok := served(); ok {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a connection that ended leaves no place for another")
		}
	}
}
