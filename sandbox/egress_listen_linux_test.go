package sandbox

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	// As "egress", where only some addresses are listened at: 198.18.1.7:5432, 203.0.113.9:22 and [2001:db8::1]:443.
	roles["egress-listen"] = func([]string) {
		for _, address := range []string{"198.18.1.7:5432", "203.0.113.9:22", "[2001:db8::1]:443", "198.18.1.7:22", "203.0.113.8:22", "198.18.1.8:5432"} {
			c, err := net.DialTimeout("tcp", address, 5*time.Second)
			if err != nil {
				fmt.Println(address, causeOf(err))
				continue
			}
			_, _ = c.Write([]byte(address + "\n"))
			b, err := io.ReadAll(c)
			fmt.Printf("%s %q %v\n", address, b, err)
			c.Close()
		}
		for _, address := range []string{"127.0.0.1:5432", "0.0.0.0:5432", "0.0.0.0:80"} {
			l, err := net.Listen("tcp", address)
			if err == nil {
				defer l.Close()
			}
			fmt.Println("bind", address, causeOf(err))
		}
		u, err := net.Dial("udp", "203.0.113.9:22")
		if err == nil {
			_ = u.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = u.Write([]byte("x"))
			_, err = u.Read(make([]byte, 1))
		}
		fmt.Println("udp", causeOf(err))
		// Port 80 is bound now, and the test goes on.
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

// causeOf is the number of the kernel's that an error holds.
func causeOf(err error) string {
	if err == nil {
		return "ok"
	}
	return errnoOf(err).Error()
}

// Where there is no nf_tables, connections are taken by listeners at exact addresses, which init opens as the server asks,
// also while the run goes on; all others are refused at once. The filter returns what such a kernel does, or what one does that a
// container's filter keeps it away from.
func TestEgressWithoutNftables(t *testing.T) {
	newBackend(t, "bwrap")
	ipv6, form := `"accepted [2001:db8::1]:443\n" <nil>`, EgressForm{IPv6: true}
	if !hasIPv6() {
		ipv6, form.IPv6 = "network is unreachable", false
	}
	want := `198.18.1.7:5432 "accepted 198.18.1.7:5432\n" <nil>
203.0.113.9:22 "accepted 203.0.113.9:22\n" <nil>
[2001:db8::1]:443 ` + ipv6 + `
198.18.1.7:22 connection refused
203.0.113.8:22 connection refused
198.18.1.8:5432 connection refused
bind 127.0.0.1:5432 ok
bind 0.0.0.0:5432 address already in use
bind 0.0.0.0:80 ok
udp connection refused
ready
`
	for condition, why := range map[string]unix.Errno{"no nf_tables": unix.EPROTONOSUPPORT, "nf_tables refused": unix.EPERM} {
		t.Run(condition, func(t *testing.T) {
			var got map[string]withoutNftables
			runChild(t, child("TestChildWithoutNftables", condition, 0), &got)
			for _, name := range backendNames {
				r := got[name]
				if r.Fault != "" || r.Why != why.Error() || r.IPv6 != form.IPv6 || r.Output != want {
					t.Errorf("%s: %s %q, IPv6 %t, output\n%s\nwant\n%s", name, r.Fault, r.Why, r.IPv6, r.Output, want)
				}
				if r.Late != "ok" || r.Taken != "address already in use" || r.After == "ok" {
					t.Errorf("%s: listening while the run goes on: %s; at a port that it has bound: %s; after its end: %s", name, r.Late, r.Taken, r.After)
				}
			}
			if len(got) != len(backendNames) {
				t.Errorf("%d backends", len(got))
			}
		})
	}
}

// withoutNftables is what a child reports of one backend.
type withoutNftables struct {
	Fault, Why         string
	IPv6               bool
	Output             string
	Late, Taken, After string // what comes of asking for a listener
}

func TestChildWithoutNftables(t *testing.T) {
	inCondition(t, childArgument(t))
	report := map[string]withoutNftables{}
	for _, name := range backendNames {
		report[name] = listenInRun(t, newBackend(t, name))
	}
	reportToParent(t, report)
}

func listenInRun(t *testing.T, b Backend) (r withoutNftables) {
	form, err := isolating(b).ProbeEgress(t.Context())
	if err != nil || form.Unredirected == nil {
		r.Fault = fmt.Sprintf("the probe gives %+v, %v", form, err)
		return r
	}
	r.Why, r.IPv6 = form.Unredirected.Error(), form.IPv6
	spec, stdio, _ := withEgress(t, "/probe", "egress-listen")
	attach := stdio.Attach
	var sockets Sockets
	listen := func(address string) error {
		l, err := sockets.Listen(netip.MustParseAddrPort(address))
		if err == nil {
			t.Cleanup(func() { l.Close() })
			go acceptAll(l)
		}
		return err
	}
	stdio.Attach = func(s Sockets) error {
		sockets = s
		for _, address := range []string{"198.18.1.7:5432", "203.0.113.9:22", "[2001:db8::1]:443"} {
			if err := listen(address); err != nil && hasIPv6() {
				return err
			}
		}
		return attach(s)
	}
	input, hold := io.Pipe()
	stdio.Stdin = input
	output, said := io.Pipe()
	stdio.Output = said
	p, err := b.Start(t.Context(), spec, stdio)
	if err != nil {
		r.Fault = err.Error()
		return r
	}
	for buffer := make([]byte, 1000); !strings.HasSuffix(r.Output, "ready\n"); {
		n, err := output.Read(buffer)
		r.Output += string(buffer[:n])
		if err != nil {
			break
		}
	}
	r.Late, r.Taken = causeOf(listen("198.18.1.9:443")), causeOf(listen("198.18.1.9:80"))
	hold.Close()
	if _, err := p.Wait(); err != nil {
		r.Fault = err.Error()
	}
	r.After = causeOf(listen("198.18.1.10:443"))
	return r
}
