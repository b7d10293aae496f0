package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// addEgressRoutes gives the loopback interface an address of each family and the default route. What
// leaves by it comes back to the same namespace: there is nowhere else.
func addEgressRoutes() error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return setupError("open socket", "rtnetlink", err)
	}
	defer unix.Close(s)
	index, err := loopbackIndex()
	if err != nil {
		return err
	}
	addr := netip.MustParseAddr(egressAddress)
	if err := addAddress(s, index, addr, egressBits); err != nil {
		return setupError("add address", egressAddress, err)
	}
	if err := addDefaultRoute(s, index, addr); err != nil {
		return setupError("add default route by", "lo", err)
	}
	addr = netip.MustParseAddr(egressAddress6)
	if err := addAddress(s, index, addr, 128); err != nil {
		return nil // a host without IPv6, or with it switched off: there is no way out by it then
	}
	return setupError("add default IPv6 route by", "lo", addDefaultRoute(s, index, addr))
}

func loopbackIndex() (uint32, error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, setupError("open socket", "", err)
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFINDEX, req); err != nil {
		return 0, setupError("find interface", "lo", err)
	}
	return req.Uint32(), nil
}

func family(addr netip.Addr) byte {
	if addr.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// addAddress is RTM_NEWADDR of rtnetlink(7).
func addAddress(s int, index uint32, addr netip.Addr, bits int) error {
	body := []byte{family(addr), byte(bits), unix.IFA_F_NODAD, unix.RT_SCOPE_UNIVERSE} // struct ifaddrmsg
	body = binary.NativeEndian.AppendUint32(body, index)
	body = appendAttribute(body, unix.IFA_LOCAL, addr.AsSlice())
	body = appendAttribute(body, unix.IFA_ADDRESS, addr.AsSlice())
	return request(s, unix.RTM_NEWADDR, body)
}

// addDefaultRoute is RTM_NEWROUTE of rtnetlink(7). It makes every address one of this namespace (RTN_LOCAL), so that what the
// rules of the redirect don't take is answered: by a reset, since nobody listens there. By any other kind of route it would be
// dropped without a word, and who had sent it would wait.
func addDefaultRoute(s int, index uint32, source netip.Addr) error {
	body := []byte{ // struct rtmsg
		family(source), 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0,
	}
	body = appendAttribute(body, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, index))
	body = appendAttribute(body, unix.RTA_PREFSRC, source.AsSlice())
	return request(s, unix.RTM_NEWROUTE, body)
}

// appendAttribute appends a struct rtattr and its value, padded to four bytes.
func appendAttribute(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%unix.RTA_ALIGNTO != 0 {
		b = append(b, 0)
	}
	return b
}

// request sends a message that makes something, and reads the kernel's verdict.
func request(s int, kind uint16, body []byte) error {
	const flags = unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_EXCL
	m := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	m = binary.NativeEndian.AppendUint16(m, kind)
	m = binary.NativeEndian.AppendUint16(m, flags)
	m = append(m, make([]byte, 8)...) // sequence and port
	m = append(m, body...)
	if err := unix.Sendto(s, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(s, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return errors.New("rtnetlink: a short answer")
	}
	if kind := binary.NativeEndian.Uint16(answer[4:]); kind != unix.NLMSG_ERROR {
		return fmt.Errorf("rtnetlink: an answer of kind %d", kind)
	}
	if errno := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}
