package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Gateway takes what runs send to the network. It is made of one policy and serves any number of runs,
// each by a [Session] of its own.
type Gateway struct {
	policy *Policy
	dialer *dialer
	slots  chan struct{} // connections of all runs
	each   int           // how many of them one run may have

	listening     chan struct{} // listeners of all runs, where connections are not redirected
	listeningEach int           // how many of them one run may have
}

// NewGateway makes the gateway of a configuration, or returns what [Config.Validate] does. lookup
// resolves the names that the configuration gives no address for; nil is the host's resolver.
func NewGateway(c Config, lookup Lookup) (*Gateway, error) {
	policy, err := NewPolicy(c)
	if err != nil {
		return nil, err
	}
	if lookup == nil {
		lookup = hostLookup
	}
	descriptors := descriptorLimit()
	all, each := connectionLimits(descriptors)
	listening, listeningEach := listenerLimits(descriptors)
	return &Gateway{
		policy: policy, slots: make(chan struct{}, all), each: each,
		listening: make(chan struct{}, listening), listeningEach: listeningEach,
		dialer: &dialer{policy: policy, lookup: lookup, upstream: newUpstream(c.Upstream), own: ownAddresses, connect: connectDirect},
	}, nil
}

// Policy is what the gateway decides by.
func (g *Gateway) Policy() *Policy { return g.policy }

// Listeners are the sockets of a run's network namespace that the run's connections and queries arrive
// at. A field may be nil.
type Listeners struct {
	// Redirected get every connection that the run opens to an address that is not its own loopback's,
	// wherever it goes.
	Redirected []net.Listener
	// Listen, where connections can't be redirected, opens a listener at any address and port of the namespace. It
	// is asked for those of the names that the run looks up, and of the addresses that the policy lists.
	Listen func(netip.AddrPort) (net.Listener, error)
	// Proxy gets the connections of programs that were told of a proxy: HTTP or SOCKS5.
	Proxy net.Listener
	// Queries and QueryStream get the run's DNS queries, by UDP and by TCP.
	Queries     net.PacketConn
	QueryStream net.Listener
}

const (
	// maxConnections bounds the connections that one run has open at a time, and descriptorsEach is how many
	// descriptors of the server each may take: two sockets, and two pipes that bytes are moved through.
	maxConnections  = 2000
	descriptorsEach = 6
	// retryDelay is waited where a socket fails for want of something, so that it is not asked without end.
	retryDelay = 10 * time.Millisecond
)

// connectionLimits bound the connections of all runs together, which leave the server a half of the files
// that it may open, and those of one run, which leaves some to the others. Without this a run could take
// from the server what it lands and answers with.
func connectionLimits(descriptors int) (all, each int) {
	all = max(4, descriptors/2/descriptorsEach)
	return all, min(maxConnections, all*3/4)
}

// Session serves one run. Nobody but the run can reach its listeners, so that it needs no credential.
type Session struct {
	gateway   *Gateway
	names     names
	denials   denials
	unreached unreached

	ctx    context.Context // of all that goes on for the run; it ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	listeners listeners // where nothing is redirected

	mu    sync.Mutex
	taken int // slots
	open  map[net.Conn]bool
	close []func() error
}

// Serve begins to serve a run, and owns the listeners from then on.
func (g *Gateway) Serve(l Listeners) *Session {
	s := &Session{gateway: g, open: map[net.Conn]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, ln := range l.Redirected {
		s.accept(ln, s.forward)
	}
	if l.Listen != nil {
		s.listeners.open = l.Listen
		s.listenAtAddresses()
	}
	if l.Proxy != nil {
		s.accept(l.Proxy, s.front())
	}
	if l.QueryStream != nil {
		s.accept(l.QueryStream, s.answerTCP)
	}
	if l.Queries != nil {
		s.close = append(s.close, l.Queries.Close)
		s.work.Go(func() { s.answerUDP(l.Queries) })
	}
	return s
}

// Close ends every connection of the run, and returns when nothing of it goes on.
func (s *Session) Close() {
	s.cancel()
	s.mu.Lock()
	for _, f := range s.close {
		_ = f() // a listener that is closed already
	}
	for conn := range s.open {
		reset(conn)
	}
	s.mu.Unlock()
	s.work.Wait()
	s.listeners.release(s.gateway)
}

// Denied returns the destinations that the run was refused, each once, and how many refusals there were
// beyond those that are remembered.
func (s *Session) Denied() (list []DeniedError, more int) { return s.denials.all() }

// Unreached returns the destinations that the run may connect to and never could. What is remembered is bounded.
func (s *Session) Unreached() []UnreachedError { return s.unreached.all() }

func (s *Session) ended() bool { return s.ctx.Err() != nil }

// accept serves the connections of a listener until the session is closed.
func (s *Session) accept(ln net.Listener, serve func(context.Context, net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended() {
		ln.Close()
		return
	}
	s.close = append(s.close, ln.Close)
	s.work.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				if s.ended() || errors.Is(err, net.ErrClosed) {
					return
				}
				// The server is out of descriptors, or the connection has ended by now.
				time.Sleep(retryDelay)
				continue
			}
			if !s.takeSlot() {
				reset(conn)
				continue
			}
			if !s.track(conn) {
				s.giveSlot()
				continue
			}
			s.work.Go(func() {
				defer s.giveSlot()
				defer s.untrack(conn)
				serve(s.ctx, conn)
			})
		}
	})
}

// takeSlot counts a connection of the run; not ok if it has too many, or all runs have together.
func (s *Session) takeSlot() (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == s.gateway.each {
		return false
	}
	select {
	case s.gateway.slots <- struct{}{}:
		s.taken++
		return true
	default:
		return false
	}
}

func (s *Session) giveSlot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	<-s.gateway.slots
}

// track makes a connection end with the session; not ok if that has ended already.
func (s *Session) track(conn net.Conn) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended() {
		reset(conn)
		return false
	}
	s.open[conn] = true
	return true
}

// untrack closes a connection.
func (s *Session) untrack(conn net.Conn) {
	s.mu.Lock()
	delete(s.open, conn)
	s.mu.Unlock()
	conn.Close()
}

// dial connects to a destination for the run, and notes a refusal, or a failure that is not the run's own end.
func (s *Session) dial(ctx context.Context, host string, port int) (net.Conn, error) {
	host = s.names.host(host)
	conn, err := s.gateway.dialer.dial(ctx, host, port)
	if refused := err != nil && s.denials.note(err); !refused && (err == nil || ctx.Err() == nil) {
		s.unreached.note(host, port, err)
	}
	if err != nil {
		return nil, err
	}
	if !s.track(conn) {
		return nil, context.Canceled
	}
	return conn, nil
}

// carry relays a connection of the run to its destination, whose name what the client says first must
// not contradict.
func (s *Session) carry(client, server net.Conn, host string, port int) {
	defer s.untrack(server)
	err := relay(client, server, func(first []byte) (int, error) { return s.checkName(first, host, port) })
	s.denials.note(err)
}

// checkName compares the server name of a TLS client with the host that it connected to. One name on
// many others' address would else reach them all. A client that connected to an address may name what
// the policy allows by name. With errIncomplete, pass is what can go on before more is seen.
func (s *Session) checkName(first []byte, host string, port int) (pass int, err error) {
	pass, more, err := withoutPlainRequests(first)
	if more {
		return pass, errIncomplete
	}
	name := ""
	if err == nil {
		name, err = serverName(first[pass:])
	}
	if errors.Is(err, errIncomplete) {
		return pass, err
	}
	host = s.names.host(host)
	if err != nil {
		return 0, &DeniedError{Host: spelled(host), Port: port, Reason: err.Error()}
	}
	if name == "" {
		return 0, nil
	}
	asked, err := CanonicalHost(name)
	if err == nil {
		want, _ := CanonicalHost(host)
		if asked == want {
			return 0, nil
		}
		if isAddress(want) && s.gateway.policy.Decide(asked, port).Allow {
			return 0, nil
		}
	}
	return 0, &DeniedError{Host: spelled(host), Port: port, Reason: "TLS asks for another host there, " + spelled(name)}
}

// hostLookup asks the host's resolver.
func hostLookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}
