package proxy

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// originalDestination is where a connection wanted to go that the redirect of a run's namespace sent to
// our listener. (SO_ORIGINAL_DST of netfilter, and its IPv6 form; asked of the accepted socket, which is
// of that namespace wherever this process is.)
func originalDestination(conn *net.TCPConn) (netip.AddrPort, error) {
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("no TCP address: %v", conn.LocalAddr())
	}
	var dest netip.AddrPort
	err := control(conn, func(fd int) (err error) {
		if local.IP.To4() != nil {
			// The kernel writes a sockaddr_in; this type is only large enough, and of the right form.
			m, err := unix.GetsockoptIPv6Mreq(fd, unix.IPPROTO_IP, unix.SO_ORIGINAL_DST)
			if err != nil {
				return err
			}
			b := m.Multiaddr
			dest = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), uint16(b[2])<<8|uint16(b[3]))
			return nil
		}
		m, err := unix.GetsockoptIPv6MTUInfo(fd, unix.IPPROTO_IPV6, unix.SO_ORIGINAL_DST)
		if err != nil {
			return err
		}
		port := m.Addr.Port // in the order of the network
		dest = netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr), port<<8|port>>8)
		return nil
	})
	if err != nil {
		return netip.AddrPort{}, err
	}
	if dest == local.AddrPort() {
		return netip.AddrPort{}, fmt.Errorf("%v was not redirected", dest)
	}
	return dest, nil
}

// unpaced is the Control of a [net.Dialer]: it takes the pacing from a connection to this host itself. There is no congestion
// on a loopback, and what is done against it where the host's default is bbr costs three times the processor when bytes are
// moved by splice(2). Where the kernel does not let us choose, the connection is only slower.
func unpaced(_, address string, raw syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || !addr.Addr().Unmap().IsLoopback() {
		return nil
	}
	return raw.Control(func(fd uintptr) { _ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") })
}

// broken reports whether a connection was reset.
func broken(conn net.Conn) bool {
	tcp, ok := below(conn).(*net.TCPConn)
	if !ok {
		return false
	}
	const closed = 7 // TCP_CLOSE of linux/tcp_states.h
	gone := true
	_ = control(tcp, func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		gone = err != nil || info.State == closed
		return nil
	})
	return gone
}

// waitSent waits until the other side has taken what was written, at most for d.
func waitSent(conn net.Conn, d time.Duration) {
	tcp, ok := below(conn).(*net.TCPConn)
	if !ok {
		return
	}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		unsent := 0
		err := control(tcp, func(fd int) (err error) {
			unsent, err = unix.IoctlGetInt(fd, unix.TIOCOUTQ) // SIOCOUTQ has the same number
			return err
		})
		if err != nil || unsent == 0 || broken(conn) {
			return
		}
	}
}

func control(conn syscall.Conn, f func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	if err != nil {
		return err
	}
	return failed
}

// descriptorLimit is how many descriptors this process may have open (RLIMIT_NOFILE).
func descriptorLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1024 // what Linux gives where nobody said anything
	}
	return int(min(limit.Cur, 1<<30))
}
