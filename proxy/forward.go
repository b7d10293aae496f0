package proxy

import (
	"context"
	"net"
	"net/netip"
)

// forward serves a connection that was redirected, or that a listener took: to a stand-in, which means its name, or to an
// address that the program had from elsewhere. What is refused, or can't be reached, is reset.
func (s *Session) forward(ctx context.Context, conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	dest, err := s.destination(tcp)
	if err != nil {
		reset(conn) // someone connected to the listener itself, which is nothing
		return
	}
	host := s.names.host(dest.Addr().Unmap().String())
	server, err := s.dial(ctx, host, int(dest.Port()))
	if err != nil {
		reset(conn)
		return
	}
	s.carry(conn, server, host, int(dest.Port()))
}

// destination is where a connection of the run wanted to go.
func (s *Session) destination(conn *net.TCPConn) (netip.AddrPort, error) {
	if s.listeners.open == nil {
		return originalDestination(conn)
	}
	return netip.ParseAddrPort(conn.LocalAddr().String())
}

// isAddress reports whether a canonical host is an address.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
