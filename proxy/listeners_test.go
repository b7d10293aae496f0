package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestPolicyPorts(t *testing.T) {
	c := Config{
		Mode:  "allowlist",
		Allow: []string{"a.test", "a.test:5432", "*.a.test:22", "b.test:*", "1.1.1.1:25", "10.0.0.1:22"},
		Deny:  []string{"no.a.test", "a.test:80", "b.test:443"},
	}
	policy, err := NewPolicy(c)
	if err != nil {
		t.Fatal(err)
	}
	b := slices.DeleteFunc(slices.Clone(openPorts), func(port int) bool { return port == 443 })
	for host, want := range map[string][]int{
		"a.test": {443, 5432}, "x.a.test": {22}, "no.a.test": {}, "b.test": b, "c.test": {}, "1.1.1.1": {25}, "10.0.0.1": {},
	} {
		if got := policy.Ports(host); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
	if got := policy.AllPorts(); !slices.Equal(got, openPorts) { // which has 22, 25, 80, 443 and 5432 too
		t.Errorf("all: %v", got)
	}
	for mode, want := range map[string][]int{"allow": openPorts, "deny": {}} {
		c := c
		c.Mode = mode
		policy, err := NewPolicy(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := policy.AllPorts(); !slices.Equal(got, want) {
			t.Errorf("%s: all %v, want %v", mode, got, want)
		}
	}
}

// namespace plays a run's, whose addresses are all its own.
type namespace struct {
	mu     sync.Mutex
	asked  []string
	open   int
	refuse map[string]error
}

type namespaceListener struct {
	net.Listener
	closed func()
}

func (l namespaceListener) Close() error { l.closed(); return l.Listener.Close() }

func (n *namespace) listen(at netip.AddrPort) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, at.String())
	if err := n.refuse[at.String()]; err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	n.open++
	return namespaceListener{ln, func() { n.mu.Lock(); n.open--; n.mu.Unlock() }}, err
}

func (n *namespace) wantAsked(t *testing.T, want ...string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Equal(n.asked, want) {
		t.Errorf("asked to listen at %v, want %v", n.asked, want)
	}
	n.asked = nil
}

// Listeners are opened for what the policy lists by address, and for names as they are looked up, each once, and no more than
// a run may have. All are gone with the run.
func TestListenersFollowTheNames(t *testing.T) {
	n := &namespace{refuse: map[string]error{"198.18.1.0:22": syscall.EADDRINUSE, "198.18.1.1:80": errors.New("broken")}}
	g, err := NewGateway(Config{
		Mode: "allowlist", Allow: []string{"a.test", "a.test:22", "*.b.test", "1.1.1.1:5432", "[2001:db8::1]:443", "10.0.0.1"},
		Private: []string{"2001:db8::/32"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g.listeningEach = 6
	stream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	queries, err := net.ListenPacket("udp", stream.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := g.Serve(Listeners{Queries: queries, QueryStream: stream, Listen: n.listen})
	r := run{s, "", stream.Addr().String()}
	defer s.Close()
	n.wantAsked(t, "1.1.1.1:5432", "[2001:db8::1]:443")
	for _, tt := range []struct {
		name  string
		kind  dnsmessage.Type
		asked []string
	}{
		{"c.test.", dnsmessage.TypeA, nil},
		{"a.test.", dnsmessage.TypeAAAA, nil},
		{"a.test.", dnsmessage.TypeA, []string{"198.18.1.0:22", "198.18.1.0:80", "198.18.1.0:443"}},
		{"A.test.", dnsmessage.TypeA, []string{"198.18.1.0:22"}}, // it may be free now
		{"x.b.test.", dnsmessage.TypeA, []string{"198.18.1.1:80", "198.18.1.1:443"}},
		{"y.b.test.", dnsmessage.TypeA, []string{"198.18.1.2:80"}},
	} {
		m := r.ask(t, "udp", tt.name, tt.kind)
		if (len(m.Answers) == 1) != (tt.asked != nil) {
			t.Errorf("%s: %v", tt.name, m.Answers)
		}
		n.wantAsked(t, tt.asked...)
	}
	r.wantDenied(t,
		"c.test not in network.allow",
		"a.test:22 the run has bound this port itself, for all addresses; bind it on 127.0.0.1",
		"x.b.test:80 connections can't be redirected here, and there is no listener: broken",
		"y.b.test:443 connections can't be redirected here, and all 6 listeners of this run are taken; use the proxy (https_proxy)",
	)
	if len(g.listening) != 6 || n.open != 6 {
		t.Errorf("%d listeners are counted, %d are open", len(g.listening), n.open)
	}
	s.Close()
	if len(g.listening) != 0 || n.open != 0 {
		t.Errorf("after the run %d listeners are counted, %d are open", len(g.listening), n.open)
	}
}

func TestListenerLimits(t *testing.T) {
	for _, tt := range []struct{ descriptors, all, each int }{{1 << 20, 131072, 4096}, {1024, 128, 32}, {0, 32, 8}} {
		if all, each := listenerLimits(tt.descriptors); all != tt.all || each != tt.each {
			t.Errorf("listenerLimits(%d) = %d, %d; want %d, %d", tt.descriptors, all, each, tt.all, tt.each)
		}
	}
	// All runs together are bounded too.
	g := &Gateway{listening: make(chan struct{}, 1), listeningEach: 5}
	n := &namespace{}
	var first, second listeners
	first.open, second.open = n.listen, n.listen
	at := netip.MustParseAddrPort("198.18.1.0:80")
	one, err := first.add(g, at)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if _, err := second.add(g, at); fmt.Sprint(err) != "connections can't be redirected here, and all 1 listeners of all runs are taken; use the proxy (https_proxy)" {
		t.Error(err)
	}
	first.release(g)
	two, err := second.add(g, at)
	if err != nil {
		t.Fatal(err)
	}
	two.Close()
}
