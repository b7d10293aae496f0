//go:build !linux

package proxy

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
)

func originalDestination(*net.TCPConn) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.New("connections are redirected on Linux only")
}

func unpaced(_, _ string, _ syscall.RawConn) error { return nil }

func broken(net.Conn) bool { return false }

func waitSent(net.Conn, time.Duration) {}

func splice(_, _ net.Conn) (done bool, err error) { return false, nil }

func descriptorLimit() int { return 1024 }
