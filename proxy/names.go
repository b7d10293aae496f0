package proxy

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// Stand-ins are the addresses that names have inside a run: every name gets one of its own, so that a
// connection to it is a connection to the name. They are of the range that RFC 2544 sets aside for
// benchmarks, which no program has a use for.
var (
	standIns     = netip.MustParsePrefix("198.18.0.0/15")
	firstStandIn = netip.MustParseAddr("198.18.1.0") // before it lie the run's own addresses
)

// maxNames bounds the names that one run may learn an address of.
const maxNames = 16 << 10

// names gives stand-ins to the names of one run, and knows them again.
type names struct {
	mu     sync.Mutex
	byName map[string]netip.Addr
	byAddr map[netip.Addr]string
}

// standIn returns the address of a canonical name; not ok if there are too many names already.
func (n *names) standIn(name string) (addr netip.Addr, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr, ok := n.byName[name]; ok {
		return addr, true
	}
	if len(n.byName) == maxNames {
		return netip.Addr{}, false
	}
	if n.byName == nil {
		n.byName, n.byAddr = map[string]netip.Addr{}, map[netip.Addr]string{}
	}
	b := firstStandIn.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(len(n.byName)))
	addr = netip.AddrFrom4(b)
	n.byName[name], n.byAddr[addr] = addr, name
	return addr, true
}

// name returns the name that has a stand-in.
func (n *names) name(addr netip.Addr) (name string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok = n.byAddr[addr.Unmap()]
	return name, ok
}

// host returns what a run means by a host: the name, if it is a stand-in.
func (n *names) host(host string) string {
	canonical, err := CanonicalHost(host)
	if err != nil {
		return host
	}
	addr, err := netip.ParseAddr(canonical)
	if err != nil || !standIns.Contains(addr) {
		return host
	}
	if name, ok := n.name(addr); ok {
		return name
	}
	return host
}
