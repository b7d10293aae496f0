package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	// A program that knows nothing of proxies, and binds the ports that it likes.
	roles["egress"] = func([]string) {
		for _, address := range []string{"198.18.1.7:5432", "203.0.113.9:22", "[2001:db8::1]:443"} {
			c, err := net.DialTimeout("tcp", address, 5*time.Second)
			if err != nil {
				fmt.Println(address, err)
				continue
			}
			_, _ = c.Write([]byte(address + "\n"))
			b, err := io.ReadAll(c)
			fmt.Printf("%s %q %v\n", address, b, err)
			c.Close()
		}
		for _, address := range []string{"0.0.0.0:5432", "0.0.0.0:22", "[::]:443", "127.0.0.1:53"} {
			l, err := net.Listen("tcp", address)
			if err != nil {
				fmt.Println(err)
				continue
			}
			_, port, _ := net.SplitHostPort(address)
			fmt.Println("bound", port, connect("tcp", "127.0.0.1:"+port))
			l.Close()
		}
		u, err := net.Dial("udp", "203.0.113.9:123")
		if err == nil {
			_ = u.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = u.Write([]byte("x"))
			_, err = u.Read(make([]byte, 1))
		}
		fmt.Println("udp", errors.Is(err, unix.ECONNREFUSED))
		q, err := net.Dial("udp", ResolverAddress+":53")
		if err == nil {
			_ = q.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = q.Write([]byte("query"))
			b := make([]byte, 20)
			var n int
			n, err = q.Read(b)
			fmt.Printf("resolver %q %v\n", b[:n], err)
		}
		fmt.Println("resolver by tcp", connect("tcp", ResolverAddress+":53"))
		interfaces, err := net.Interfaces()
		fmt.Println(len(interfaces), interfaces[0].Name, err)
	}
}

// withEgress makes a run whose sockets answer: each connection with the address that it was accepted at and
// the first line that it sent.
func withEgress(t *testing.T, argv ...string) (Spec, Stdio, *bytes.Buffer) {
	spec := testSpec(t, argv...)
	spec.Network, spec.Egress = NetworkRedirected, Egress{RedirectPort: 61001, ProxyPort: 61002}
	var out bytes.Buffer
	return spec, Stdio{Output: &out, Attach: func(s Sockets) error {
		t.Cleanup(func() { s.Close() })
		for _, l := range append([]net.Listener{s.Proxy, s.QueryStream}, s.Redirected...) {
			go acceptAll(l)
		}
		go func() {
			b := make([]byte, 64)
			for {
				n, from, err := s.Queries.ReadFrom(b)
				if err != nil {
					return
				}
				_, _ = s.Queries.WriteTo(append([]byte("answer to "), b[:n]...), from)
			}
		}()
		return nil
	}}, &out
}

// acceptAll answers each connection with the first line that it sent.
func acceptAll(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		line := make([]byte, 64)
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		n, _ := c.Read(line)
		fmt.Fprintf(c, "accepted %s", line[:n])
		c.Close()
	}
}

// Every connection to anywhere arrives at the server's sockets, on any port, while the run binds the ports
// that it likes.
func TestEgressIsRedirected(t *testing.T) { onEach(t, testEgressIsRedirected) }

func testEgressIsRedirected(t *testing.T, n Backend) {
	spec, stdio, out := withEgress(t, "/probe", "egress")
	exit, err := startRun(t, n, spec, stdio).Wait()
	if err != nil || exit != (Exit{}) {
		t.Fatalf("%+v, %v, output:\n%s", exit, err, out)
	}
	want := `198.18.1.7:5432 "accepted 198.18.1.7:5432\n" <nil>
203.0.113.9:22 "accepted 203.0.113.9:22\n" <nil>
[2001:db8::1]:443 "accepted [2001:db8::1]:443\n" <nil>
bound 5432 connected
bound 22 connected
bound 443 connected
bound 53 connected
udp true
resolver "answer to query" <nil>
resolver by tcp connected
1 lo <nil>
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The run holds none of the sockets, and can't change the rules that lead to them.
func TestEgressIsNotTheRuns(t *testing.T) { onEach(t, testEgressIsNotTheRuns) }

func testEgressIsNotTheRuns(t *testing.T, n Backend) {
	spec, stdio, out := withEgress(t, "sh", "-c", "ls /proc/self/fd | tr '\\n' ' '; ip route del default 2>&1 | grep -c permitted; nft flush ruleset 2>&1 | grep -c permitted; true")
	if _, err := startRun(t, n, spec, stdio).Wait(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "0 1 2 3 ") {
		t.Errorf("the run sees %q", got)
	}
}

// What a run sends is not paced, whatever the host does with its own connections: all of it stays on a loopback.
func TestEgressIsNotPaced(t *testing.T) { onEach(t, testEgressIsNotPaced) }

func testEgressIsNotPaced(t *testing.T, n Backend) {
	spec, stdio, out := withEgress(t, "cat", "/proc/sys/net/ipv4/tcp_congestion_control")
	if _, err := startRun(t, n, spec, stdio).Wait(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "reno\n" {
		t.Errorf("congestion control %q", got)
	}
}

// An Attach that fails is a run that does not start.
func TestEgressRefused(t *testing.T) { onEach(t, testEgressRefused) }

func testEgressRefused(t *testing.T, n Backend) {
	spec, stdio, _ := withEgress(t, "true")
	if _, err := startRun(t, n, spec, stdio).Wait(); err != nil { // or skip
		t.Fatal(err)
	}
	stdio.Attach = func(s Sockets) error {
		s.Close()
		return errors.New("no gateway")
	}
	_, err := n.Start(t.Context(), spec, stdio)
	if e := new(SetupError); !errors.As(err, &e) || e.Op != "attach the network" {
		t.Errorf("error %v", err)
	}
	stdio.Attach = nil
	if _, err := n.Start(t.Context(), spec, stdio); err == nil {
		t.Error("a run without an Attach started")
	}
	spec.Egress.ProxyPort = spec.Egress.RedirectPort
	if err := spec.validate(); err == nil {
		t.Error("one port for two uses was accepted")
	}
}

func TestProbeEgress(t *testing.T) { onEach(t, testProbeEgress) }

func testProbeEgress(t *testing.T, n Backend) {
	startRun(t, n, testSpec(t, "true"), Stdio{}).Wait() //nolint:errcheck // it is for the skip
	form, err := isolating(n).ProbeEgress(t.Context())
	if want := (EgressForm{IPv6: hasIPv6()}); err != nil || form != want {
		t.Errorf("%+v, %v, want %+v", form, err, want)
	}
}

// hasIPv6 reports whether this host speaks it. (That it has no NAT for it is not met with here.)
func hasIPv6() bool {
	l, err := net.Listen("tcp", "[::1]:0")
	if err == nil {
		l.Close()
	}
	return err == nil
}

// What the rules don't take is refused at once. This is a namespace without any, as a kernel without NAT for IPv6 leaves it.
func TestEgressWithoutRules(t *testing.T) {
	newBackend(t, "native")
	var got map[string]string
	runChild(t, child("TestChildWithoutRules", "x", unix.CLONE_NEWUSER|unix.CLONE_NEWNET), &got)
	for address, err := range got {
		if err != "connection refused" {
			t.Errorf("%s: %s", address, err)
		}
	}
	want := 2
	if hasIPv6() {
		want = 6
	}
	if len(got) != want {
		t.Errorf("tried %v", got)
	}
}

func TestChildWithoutRules(t *testing.T) {
	childArgument(t)
	if err := errors.Join(raiseLoopback(), addEgressRoutes()); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	addresses := []string{"203.0.113.9:443"}
	if hasIPv6() {
		addresses = append(addresses, "[2001:db8::1]:443", "[64:ff9b::1]:22")
	}
	for _, address := range addresses {
		for _, network := range []string{"tcp", "udp"} {
			conn, err := net.DialTimeout(network, address, 3*time.Second)
			if err == nil {
				_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
				_, _ = conn.Write([]byte("x"))
				_, err = conn.Read(make([]byte, 1))
				conn.Close()
			}
			why := fmt.Sprint(err)
			if errors.Is(err, unix.ECONNREFUSED) {
				why = "connection refused"
			}
			got[network+" "+address] = why
		}
	}
	reportToParent(t, got)
}
