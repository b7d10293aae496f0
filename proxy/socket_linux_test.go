package proxy

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// Bytes to this host itself are not paced; those to the network are as the host has it.
func TestUnpaced(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := connectDirect(t.Context(), netip.MustParseAddrPort(l.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	control := func() (name string) {
		_ = raw.Control(func(fd uintptr) { name, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) })
		return name
	}
	if got := control(); got != "reno" {
		t.Errorf("to loopback: %q", got)
	}
	other, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	before, _ := unix.GetsockoptString(other, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	for address, want := range map[string]string{"192.0.2.1:443": before, "[2001:db8::1]:443": before, "127.0.0.1:443": "reno"} {
		if err := unpaced("tcp", address, rawSocket(other)); err != nil {
			t.Fatal(err)
		}
		if got, _ := unix.GetsockoptString(other, unix.IPPROTO_TCP, unix.TCP_CONGESTION); got != want {
			t.Errorf("to %s: %q, not %q", address, got, want)
		}
		_ = unix.SetsockoptString(other, unix.IPPROTO_TCP, unix.TCP_CONGESTION, before)
	}
}

// rawSocket is a socket as a Control of a [net.Dialer] gets it.
type rawSocket uintptr

func (s rawSocket) Control(f func(uintptr)) error { f(uintptr(s)); return nil }
func (rawSocket) Read(func(uintptr) bool) error   { return nil }
func (rawSocket) Write(func(uintptr) bool) error  { return nil }
