package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The sockets of a run's egress cross from init to the server on a socket of their own, descriptor 6 of
// init, in one message: its bytes say what each descriptor is. Init makes them before the payload exists
// and keeps none. Where it can't redirect, two bytes more say so, and more sockets follow as the server asks for
// them: see egress_listen_linux.go.

// socketKind is what one descriptor is.
type socketKind byte

const (
	socketRedirected  socketKind = 'r'
	socketProxy       socketKind = 'p'
	socketQueries     socketKind = 'q'
	socketQueryStream socketKind = 's'

	unredirected socketKind = 'u' // no socket; the byte that follows is the error's number
)

// maxSockets is more than are ever sent.
const maxSockets = 8

// openEgress makes the run's network namespace send all that it can to sockets of ours, and sends these
// to the server. asked tells whether the server will ask for more.
func openEgress(e Egress) (asked bool, err error) {
	if err := addEgressRoutes(); err != nil {
		return false, err
	}
	type opened struct {
		kind socketKind
		ipv6 bool
		fd   int
	}
	var sockets []opened
	defer func() {
		for _, s := range sockets {
			unix.Close(s.fd)
		}
	}()
	resolver := netip.AddrPortFrom(netip.MustParseAddr(ResolverAddress), 53)
	loopback := netip.MustParseAddr("127.0.0.1")
	for _, want := range []struct {
		kind     socketKind
		how      int
		addr     netip.AddrPort
		optional bool
	}{
		{socketRedirected, unix.SOCK_STREAM, netip.AddrPortFrom(loopback, uint16(e.RedirectPort)), false},
		{socketRedirected, unix.SOCK_STREAM, netip.AddrPortFrom(netip.IPv6Loopback(), uint16(e.RedirectPort)), true}, // a host can be without IPv6
		{socketProxy, unix.SOCK_STREAM, netip.AddrPortFrom(loopback, uint16(e.ProxyPort)), false},
		{socketQueryStream, unix.SOCK_STREAM, resolver, false},
		{socketQueries, unix.SOCK_DGRAM, resolver, false},
	} {
		fd, err := openSocket(want.how, want.addr)
		if err != nil && want.optional {
			continue
		}
		if err != nil {
			return false, setupError("open the run's egress at", want.addr.String(), err)
		}
		sockets = append(sockets, opened{want.kind, want.addr.Addr().Is6(), fd})
	}
	ipv6, err := redirect(e)
	asked = isUnavailable(err)
	if err != nil && !asked {
		return false, err
	}
	var kinds []byte
	var fds []int
	for _, s := range sockets {
		if s.kind == socketRedirected && (asked || s.ipv6 && !ipv6) {
			continue // nothing would ever arrive at it
		}
		kinds, fds = append(kinds, byte(s.kind)), append(fds, s.fd)
	}
	if asked {
		kinds = append(kinds, byte(unredirected), byte(errnoOf(err)))
	}
	return asked, setupError("hand over the run's egress", "", unix.Sendmsg(egressFD, kinds, unix.UnixRights(fds...), nil, 0))
}

func openSocket(how int, addr netip.AddrPort) (int, error) {
	inet := unix.AF_INET
	var sa unix.Sockaddr
	if addr.Addr().Is4() {
		sa = &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	} else {
		inet = unix.AF_INET6
		sa = &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
	}
	fd, err := unix.Socket(inet, how|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if inet == unix.AF_INET6 {
		// For IPv6 a route of our own is not enough to bind an address. This asks for no right.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
	}
	if err = unix.Bind(fd, sa); err == nil && how == unix.SOCK_STREAM {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// receiveSockets takes what openEgress sent.
func receiveSockets(from *os.File) (_ Sockets, err error) {
	kinds := make([]byte, maxSockets)
	n, fds, err := receiveDescriptors(from, kinds, maxSockets)
	if err != nil {
		return Sockets{}, err
	}
	kinds = kinds[:n]
	var s Sockets
	if n == len(fds)+2 && socketKind(kinds[n-2]) == unredirected && kinds[n-1] != 0 {
		s.Unredirected = unix.Errno(kinds[n-1])
		s.Listen = (&listenersOf{init: from}).listen
		kinds = kinds[:n-2]
	}
	for i, fd := range fds {
		kind := socketKind(0)
		if i < len(kinds) {
			kind = socketKind(kinds[i])
		}
		err = errors.Join(err, s.add(kind, fd))
	}
	if err == nil && (len(fds) != len(kinds) || s.Proxy == nil || s.Queries == nil || s.QueryStream == nil || (len(s.Redirected) == 0) != (s.Listen != nil)) {
		err = fmt.Errorf("init sent %d sockets of the kinds %q", len(fds), kinds)
	}
	if err != nil {
		_ = s.Close()
		return Sockets{}, err
	}
	return s, nil
}

// add takes a descriptor over.
func (s *Sockets) add(kind socketKind, fd int) error {
	f := os.NewFile(uintptr(fd), "egress")
	defer f.Close() // package net works on a copy
	if kind == socketQueries {
		conn, err := net.FilePacketConn(f)
		s.Queries = conn
		return err
	}
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	switch kind {
	case socketRedirected:
		s.Redirected = append(s.Redirected, l)
	case socketProxy:
		s.Proxy = l
	case socketQueryStream:
		s.QueryStream = l
	default:
		return errors.Join(fmt.Errorf("init sent a socket of the kind %q", kind), l.Close())
	}
	return nil
}

// isUnavailable reports whether a kernel lacks what was asked for, or does not let us have it.
func isUnavailable(err error) bool {
	for _, e := range []syscall.Errno{unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.EOPNOTSUPP, unix.ENOENT, unix.EPERM, unix.EACCES} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
