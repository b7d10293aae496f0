package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
)

// Where a run's connections can't be redirected, they arrive only where somebody listens: at the stand-in of each name
// that the run has looked up, and at each address that the policy lists, at the ports that the policy names for it. All
// else is refused by the kernel of the run's namespace, and nobody sees it.

// listeners are the ones of a run that were made for that.
type listeners struct {
	open func(netip.AddrPort) (net.Listener, error) // nil: connections are redirected

	mu sync.Mutex
	at map[netip.AddrPort]bool
}

// openPorts are listened on where the policy allows every port: those of services that runs are clients of. A run can't bind a
// port on the wildcard address while it is listened on, so that those of servers which people start for
// themselves (3000, 8000, 8080) are not among them.
var openPorts = []int{22, 25, 80, 110, 143, 389, 443, 465, 587, 636, 993, 995, 1433, 3306, 5432, 5671, 5672, 6379, 8443, 9418, 27017}

// Ports are those that the policy names for a host, without the denied ones; of a rule for every port those that are listened on
// where connections can't be redirected. host is canonical.
func (p *Policy) Ports(host string) []int {
	return p.ports(func(rule Pattern) bool { return rule.matchesHost(host) }, func(port int) bool { return p.Decide(host, port).Allow })
}

// AllPorts are those that it names for any host.
func (p *Policy) AllPorts() []int {
	return p.ports(func(Pattern) bool { return true }, func(int) bool { return true })
}

func (p *Policy) ports(has func(Pattern) bool, allowed func(port int) bool) []int {
	var ports []int
	switch p.mode {
	case "allow":
		ports = slices.Clone(openPorts)
	case "allowlist":
		for _, rule := range p.allow {
			switch {
			case !has(rule):
			case rule.port == defaultPorts:
				ports = append(ports, 80, 443)
			case rule.port == anyPort:
				ports = append(ports, openPorts...)
			default:
				ports = append(ports, rule.port)
			}
		}
	}
	slices.Sort(ports)
	return slices.DeleteFunc(slices.Compact(ports), func(port int) bool { return !allowed(port) })
}

// listenerLimits bound the listeners of all runs together, which take an eighth of the files that the server may open, and those
// of one run, which leaves some to the others.
func listenerLimits(descriptors int) (all, each int) {
	all = max(32, descriptors/8)
	return all, min(4096, all/4)
}

// listenAtAddresses listens at the addresses that the policy lists.
func (s *Session) listenAtAddresses() {
	if s.gateway.policy.mode != "allowlist" {
		return
	}
	for _, rule := range s.gateway.policy.allow {
		if addr, err := netip.ParseAddr(rule.host); err == nil {
			s.listenAt(rule.host, addr)
		}
	}
}

// listenAt listens at an address of the run's for a host, unless it does already, or connections are redirected.
func (s *Session) listenAt(host string, addr netip.Addr) {
	l := &s.listeners
	if l.open == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, port := range s.gateway.policy.Ports(host) {
		at := netip.AddrPortFrom(addr, uint16(port))
		if l.at[at] {
			continue
		}
		ln, err := l.add(s.gateway, at)
		switch {
		case err == nil:
			s.accept(ln, s.forward)
		case !s.ended():
			s.denials.note(&DeniedError{Host: host, Port: port, Reason: err.Error()})
		}
	}
}

// add opens one more. The error says why a destination can't be reached.
func (l *listeners) add(g *Gateway, at netip.AddrPort) (net.Listener, error) {
	if len(l.at) == g.listeningEach {
		return nil, fmt.Errorf("connections can't be redirected here, and all %d listeners of this run are taken; use the proxy (https_proxy)", g.listeningEach)
	}
	select {
	case g.listening <- struct{}{}:
	default:
		return nil, fmt.Errorf("connections can't be redirected here, and all %d listeners of all runs are taken; use the proxy (https_proxy)", cap(g.listening))
	}
	ln, err := l.open(at)
	if err != nil {
		<-g.listening
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, errors.New("the run has bound this port itself, for all addresses; bind it on 127.0.0.1")
		}
		return nil, fmt.Errorf("connections can't be redirected here, and there is no listener: %w", err)
	}
	if l.at == nil {
		l.at = map[netip.AddrPort]bool{}
	}
	l.at[at] = true
	return ln, nil
}

// release gives back what the listeners of a run counted for.
func (l *listeners) release(g *Gateway) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range l.at {
		<-g.listening
	}
	l.at = nil
}
