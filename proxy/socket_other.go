//go:build !linux

package proxy

import (
	"errors"
	"net"
	"net/netip"
	"time"
)

func originalDestination(*net.TCPConn) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.New("connections are redirected on Linux only")
}

func broken(net.Conn) bool { return false }

func waitSent(net.Conn, time.Duration) {}

func descriptorLimit() int { return 1024 }
