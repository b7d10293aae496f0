package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// Lookup resolves a name to addresses. net.DefaultResolver.LookupNetIP with the network "ip" is one.
type Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

// dialer reaches the destinations that a policy allows, from the host.
type dialer struct {
	policy   *Policy
	lookup   Lookup
	upstream *upstream // nil: destinations are dialled directly
	own      func() []netip.Addr
	connect  func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
}

const (
	// lookupTimeout and connectTimeout bound what a run waits for; they are shorter than what programs
	// wait for by themselves, so that the cause is told.
	lookupTimeout  = 10 * time.Second
	connectTimeout = 20 * time.Second
	// fallbackDelay is how long an address may keep the next one waiting (RFC 8305, Connection Attempt
	// Delay).
	fallbackDelay = 250 * time.Millisecond
)

// dial connects to a destination, a host in any spelling. A *[DeniedError] says that the policy refuses
// it; any other error is the network's. A name is resolved once, each of its addresses is judged, and
// only an address that was judged is dialled.
func (d *dialer) dial(ctx context.Context, host string, port int) (net.Conn, error) {
	if v := d.policy.Decide(host, port); !v.Allow {
		return nil, &DeniedError{Host: spelled(host), Port: port, Reason: v.Reason}
	}
	host, err := CanonicalHost(host)
	if err != nil {
		return nil, err // Decide has refused it
	}
	if d.upstream != nil && d.upstream.byName {
		return d.upstream.connect(ctx, net.JoinHostPort(host, strconv.Itoa(port)))
	}
	addrs, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	addrs, err = d.judged(host, port, addrs)
	if err != nil {
		return nil, err
	}
	connect := d.connect
	if d.upstream != nil {
		connect = func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			return d.upstream.connect(ctx, addr.String())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return race(ctx, interleave(addrs), port, connect)
}

// resolve gives the addresses of a canonical host. Those that network.resolve gives win, as those of a
// hosts file do.
func (d *dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	if addr, found := d.policy.resolve[host]; found {
		return []netip.Addr{addr}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	// With the final dot no search list of the host's makes another name of it.
	addrs, err := d.lookup(ctx, host+".")
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	return addrs, err
}

// judged drops the addresses that the policy refuses, or returns the refusal where none is left.
func (d *dialer) judged(host string, port int, addrs []netip.Addr) ([]netip.Addr, error) {
	own := d.own()
	var kept []netip.Addr
	var refused error
	for _, addr := range addrs {
		if err := d.policy.JudgeAddress(host, port, addr, own); err != nil {
			refused = err
			continue
		}
		kept = append(kept, addr.Unmap())
	}
	if len(kept) == 0 {
		return nil, refused
	}
	return kept, nil
}

// interleave orders addresses by turns of the families, IPv6 first (RFC 8305, section 4), and drops
// what is there twice.
func interleave(addrs []netip.Addr) []netip.Addr {
	var families [2][]netip.Addr
	seen := map[netip.Addr]bool{}
	for _, addr := range addrs {
		if seen[addr] {
			continue
		}
		seen[addr] = true
		family := 0
		if addr.Is4() {
			family = 1
		}
		families[family] = append(families[family], addr)
	}
	var ordered []netip.Addr
	for i := range max(len(families[0]), len(families[1])) {
		for _, family := range families {
			if i < len(family) {
				ordered = append(ordered, family[i])
			}
		}
	}
	return ordered
}

// race connects to the first address that answers. The next one is tried as soon as one has failed, or
// keeps us waiting.
func race(ctx context.Context, addrs []netip.Addr, port int, connect func(context.Context, netip.AddrPort) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	type attempt struct {
		conn net.Conn
		err  error
	}
	attempts := make(chan attempt)
	started, ended := 0, 0
	start := func() {
		addr := netip.AddrPortFrom(addrs[started], uint16(port))
		started++
		go func() {
			conn, err := connect(ctx, addr)
			attempts <- attempt{conn, err}
		}()
	}
	defer func() {
		cancel()
		// Attempts that go on end by themselves, and one that succeeds all the same is closed.
		go func() {
			for ; ended < started; ended++ {
				if late := <-attempts; late.conn != nil {
					late.conn.Close()
				}
			}
		}()
	}()
	start()
	timer := time.NewTimer(fallbackDelay)
	defer timer.Stop()
	var failed []error
	for {
		select {
		case a := <-attempts:
			ended++
			if a.err == nil {
				return a.conn, nil
			}
			failed = append(failed, a.err)
			if started < len(addrs) {
				start()
				timer.Reset(fallbackDelay)
			} else if ended == started {
				return nil, errors.Join(failed...)
			}
		case <-timer.C:
			if started < len(addrs) {
				start()
				timer.Reset(fallbackDelay)
			}
		}
	}
}

// connectDirect dials one address.
func connectDirect(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	return hostDialer().DialContext(ctx, "tcp", addr.String())
}

// hostDialer opens connections from the host.
func hostDialer() *net.Dialer { return &net.Dialer{Control: unpaced} }

// ownAddresses are the addresses of this host's interfaces.
func ownAddresses() []netip.Addr {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil // the classes of addresses are judged all the same
	}
	var own []netip.Addr
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, prefix.Addr().Unmap())
		}
	}
	return own
}

// spelled is a host as a refusal names it: canonical where it can be, else quoted and cut.
func spelled(host string) string {
	if canonical, err := CanonicalHost(host); err == nil {
		return canonical
	}
	if len(host) > 100 {
		host = host[:100] + "…"
	}
	return fmt.Sprintf("%q", host)
}
