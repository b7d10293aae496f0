package sandbox

import (
	"strings"
	"testing"
)

// The kernel's count tells a run that wanted out from one that spoke to itself.
func TestUnrouted(t *testing.T) { onEach(t, testUnrouted) }

func testUnrouted(t *testing.T, n Backend) {
	for _, tt := range []struct {
		name, script string
		want         bool
	}{
		{"nothing", "true", false},
		{"a closed port of its own", "echo > /dev/tcp/127.0.0.1/9; echo > /dev/udp/127.0.0.1/9; echo > /dev/tcp/::1/9", false},
		{"its own names", "getent hosts localhost; getent hosts airlock", false},
		{"an address", "echo > /dev/tcp/192.0.2.1/80", true},
		{"an address without a connection", "echo > /dev/udp/192.0.2.1/53", true},
		{"an address of IPv6", "echo > /dev/tcp/2001:db8::1/443", true},
		{"a name", "getent ahosts host.example", true},
		{"in the background, as its last", "(echo > /dev/tcp/192.0.2.1/80) & wait", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exit, out := doRun(t, n, testSpec(t, "bash", "-c", tt.script), "")
			if exit.Unrouted != tt.want {
				t.Errorf("%+v, want %v; output %q", exit, tt.want, out)
			}
		})
	}
}

func TestOutNoRoutes(t *testing.T) {
	for _, tt := range []struct {
		text string
		want uint64
	}{
		{"", 0},
		{"Ip: Forwarding OutNoRoutes ReasmTimeout\nIp: 2 7 9\nIcmp: OutNoRoutes\nIcmp: 5\n", 7},
		{"Ip: Forwarding OutNoRoutes\nIp: 2\n", 0},
		{"Ip: Forwarding OutNoRoutes", 0},
		{"Ip: Forwarding\nIp: 2\nIcmp: OutNoRoutes\nIcmp: 5\n", 0},
		{"Ip: OutNoRoutes\nIp: x\n", 0},
	} {
		if got := outNoRoutes([]byte(tt.text)); got != tt.want {
			t.Errorf("of %q: %d, want %d", tt.text, got, tt.want)
		}
	}
	for _, tt := range []struct {
		text string
		want uint64
	}{
		{"", 0},
		{"Ip6InNoRoutes \t3\nIp6OutNoRoutes                  \t12\nIp6ReasmTimeout\t1\n", 12},
		{strings.Repeat("Ip6InReceives\t1\n", 3) + "Ip6OutNoRoutes", 0},
	} {
		if got := outNoRoutes6([]byte(tt.text)); got != tt.want {
			t.Errorf("of %q: %d, want %d", tt.text, got, tt.want)
		}
	}
}

// A kernel that counts nothing has nothing said.
func TestRoutesWithoutCounters(t *testing.T) {
	if noRoutes.missed() {
		t.Error("what the kernel does not say was taken for an attempt")
	}
}
