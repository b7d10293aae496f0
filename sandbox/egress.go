package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// Sockets are what a run's connections and queries arrive at, in the run's own network namespace, with
// [NetworkRedirected]. They are the server's: no process of the run holds one, and nothing answers on
// them but what the caller does with them.
type Sockets struct {
	// Redirected get every TCP connection that the run opens to an address other than its loopback's, one
	// listener for each family that the host has. There are none where Listen is.
	Redirected []net.Listener
	// Listen opens a listener at any address and port of the run's namespace, in which every address is the run's own.
	// It is there where connections can't be redirected, Unredirected says why, and may be used as long as the run goes
	// on. While such a listener is open, the run can't bind its port on the wildcard address.
	Listen       func(netip.AddrPort) (net.Listener, error)
	Unredirected error
	// Proxy listens on the run's loopback, at [Egress].ProxyPort.
	Proxy net.Listener
	// Queries and QueryStream are the name server of the run, at [ResolverAddress].
	Queries     net.PacketConn
	QueryStream net.Listener
}

// Close closes all of them.
func (s Sockets) Close() error {
	var errs []error
	for _, l := range append([]net.Listener{s.Proxy, s.QueryStream}, s.Redirected...) {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	if s.Queries != nil {
		errs = append(errs, s.Queries.Close())
	}
	return errors.Join(errs...)
}

// EgressForm is how connections of runs reach their [Sockets] on this host.
type EgressForm struct {
	// Unredirected is nil where all are redirected, whatever their port; else it says why the kernel can't do that, and
	// Sockets.Listen is what there is.
	Unredirected error
	// IPv6 tells whether connections to IPv6 addresses arrive too; else they are refused.
	IPv6 bool
}

// form tries what sockets can do.
func (s Sockets) form() EgressForm {
	if s.Unredirected == nil {
		return EgressForm{IPv6: len(s.Redirected) > 1}
	}
	l, err := s.Listen(netip.AddrPortFrom(netip.MustParseAddr(egressAddress6), 443))
	if err == nil {
		l.Close()
	}
	return EgressForm{Unredirected: s.Unredirected, IPv6: err == nil}
}

// Egress is the part of a [Spec] that [NetworkRedirected] needs: the ports of the run's loopback that it
// finds taken. They are best chosen at random among those that no program is configured for and that the
// kernel gives to none by itself, which are those above 60999.
type Egress struct {
	// RedirectPort is where the namespace sends the run's connections.
	RedirectPort int `json:"redirect_port"`
	// ProxyPort is for programs that are told of a proxy.
	ProxyPort int `json:"proxy_port"`
}

// ResolverAddress is the address of the name server of a run with [NetworkRedirected], at port 53. With [NetworkNone] a run is
// told the same one, to which no route leads then; see [Exit.Unrouted].
const ResolverAddress = "198.18.0.2"

// egressAddress and egressAddress6 are the run's own addresses. It has them so that there is a way to
// everywhere, which the redirect then takes: an interface to anywhere it has not.
const (
	egressAddress  = "198.18.0.1"
	egressBits     = 15
	egressAddress6 = "fd61:6972:6c6f:636b::1" // a unique local address, RFC 4193
)

// ResolvConf is the resolv.conf of a run with [NetworkRedirected].
const ResolvConf = "nameserver " + ResolverAddress + "\noptions timeout:5 attempts:2\n"

func (s Spec) validateEgress() error {
	if s.Network != NetworkRedirected {
		return nil
	}
	for _, port := range []int{s.Egress.RedirectPort, s.Egress.ProxyPort} {
		if port < 1 || port > 65535 {
			return fmt.Errorf("%d is not a port for the run's egress", port)
		}
	}
	if s.Egress.RedirectPort == s.Egress.ProxyPort {
		return fmt.Errorf("port %d has two uses in the run's egress", s.Egress.ProxyPort)
	}
	return nil
}
