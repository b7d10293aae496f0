package sandboxtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// socketProbes try to reach listeners of the host's, and families of sockets that lead into the kernel.
func socketProbes() []probe {
	table := []probe{
		{name: "raw socket", try: socketOf(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), held: refused(unix.EPERM), control: apart},
		{name: "raw socket of IPv6", try: socketOf(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6), held: refused(unix.EPERM), control: apart},
		{name: "packet socket", try: socketOf(unix.AF_PACKET, unix.SOCK_RAW, 0), held: refused(unix.EAFNOSUPPORT), control: apart},
		{
			name: "AF_VSOCK", try: socketOf(unix.AF_VSOCK, unix.SOCK_STREAM, 0), held: refused(unix.EAFNOSUPPORT),
			absent: refused(unix.EAFNOSUPPORT), why: "this kernel was built without it",
		},
		{
			name: "AF_ALG", try: socketOf(unix.AF_ALG, unix.SOCK_SEQPACKET, 0), held: refused(unix.EAFNOSUPPORT),
			absent: refused(unix.EAFNOSUPPORT), why: "this kernel was built without it",
		},
		{name: "pair of packet sockets", try: func(*stage) error {
			_, err := unix.Socketpair(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
			return err
		}, held: refused(unix.EAFNOSUPPORT), beyond: refused(unix.EOPNOTSUPP)},
		{
			name: "SCTP", try: socketOf(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP), held: refused(unix.EPROTONOSUPPORT),
			control: nowhere, why: "trying it outside has the kernel load a module",
		},
		{name: "address of an interface", try: setAddress, held: refused(unix.EPERM), control: apart},
		{name: "the host's interfaces", try: hostInterfaces, held: refused(errNothing)},
		{
			name: "address of the outside", try: connects(address{"tcp", "192.0.2.1:443"}), held: refused(unix.ENETUNREACH),
			control: nowhere, why: "the host may have no network, and answers from there are not the test's to ask for",
		},
		{
			name: "address of the outside, IPv6", try: connects(address{"tcp", "[2001:db8::1]:443"}), held: refused(unix.ENETUNREACH),
			control: nowhere, why: "likewise",
		},
		{name: "any host socket by path", try: searchSockets, held: refused(errNothing)},
	}
	for protocol, name := range netlinkProtocols {
		table = append(table, probe{
			name: "netlink " + name, try: socketOf(unix.AF_NETLINK, unix.SOCK_RAW, protocol), held: refused(unix.EPROTONOSUPPORT),
			absent: refused(unix.EPROTONOSUPPORT), why: "this kernel was built without it",
		})
	}
	for _, l := range []struct {
		name string
		held error
	}{
		{"docker.sock", unix.ENOENT},
		{"D-Bus", unix.ENOENT},
		{"an agent at home", unix.ENOENT},
		{"X11", unix.ENOENT},
		{"X11, abstract", unix.ECONNREFUSED},
		{"D-Bus, abstract", unix.ECONNREFUSED},
		{"a port", unix.ECONNREFUSED},
		{"a port of IPv6", unix.ECONNREFUSED},
		// A socket is more than a file: to show a directory is not to let a run talk to who listens in it.
		{"shown", unix.ECONNREFUSED},
		{"in the workspace", unix.ECONNREFUSED},
	} {
		table = append(table, probe{
			name: "listener: " + l.name, held: refused(l.held, unix.EACCES),
			try: func(s *stage) error { return connect(s.Listeners[l.name]) },
		})
	}
	return append(table, probe{
		name: "listener: by the second place of a directory", held: refused(unix.ECONNREFUSED, unix.EACCES),
		try: func(s *stage) error { return connect(address{"unix", s.second("socket")}) },
	})
}

// netlinkProtocols are those that kernels commonly have, but for ROUTE.
var netlinkProtocols = map[int]string{
	unix.NETLINK_SOCK_DIAG:      "SOCK_DIAG",
	unix.NETLINK_KOBJECT_UEVENT: "KOBJECT_UEVENT",
	unix.NETLINK_GENERIC:        "GENERIC",
	unix.NETLINK_NETFILTER:      "NETFILTER",
	unix.NETLINK_AUDIT:          "AUDIT",
	unix.NETLINK_XFRM:           "XFRM",
	unix.NETLINK_CRYPTO:         "CRYPTO",
	unix.NETLINK_CONNECTOR:      "CONNECTOR",
}

func socketOf(family, kind, protocol int) func(*stage) error {
	return func(*stage) error { return closing(unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)) }
}

func connects(a address) func(*stage) error {
	return func(*stage) error { return connect(a) }
}

func connect(a address) error {
	c, err := net.DialTimeout(a.Network, a.Address, 2*time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// setAddress gives the loopback interface another address.
func setAddress(*stage) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := req.SetInet4Addr([]byte{127, 0, 0, 2}); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, req)
}

// hostInterfaces looks for an interface with a way out. The control takes a host's loopback for one, since there may be no
// other: what it shows is that interfaces can be listed.
func hostInterfaces(s *stage) error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && s.Inside {
			return fmt.Errorf("there is an interface %s", i.Name)
		}
	}
	if s.Inside || len(all) == 0 {
		return errNothing
	}
	return nil
}

// searchSockets looks for a socket in the directories where programs put theirs. The control finds the stage's.
func searchSockets(s *stage) error {
	dirs := []string{"/run", "/var/run", "/tmp", "/tmp/.X11-unix", "/run/user", "/dev", "/var/lib", "/run/dbus"}
	if !s.Inside {
		dirs = append(dirs, filepath.Dir(s.Secret))
	}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.Type()&os.ModeSocket != 0 {
				if s.Inside {
					return fmt.Errorf("there is a socket %s in %s", e.Name(), dir)
				}
				return nil
			}
		}
	}
	return errNothing
}
