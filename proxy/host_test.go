package proxy

import (
	"net/netip"
	"strings"
	"testing"
)

func TestCanonicalHost(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"example.org", "example.org"},
		{"EXAMPLE.Org", "example.org"},
		{"example.org.", "example.org"},
		{"_srv.example.org", "_srv.example.org"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"localhost", "localhost"},
		{"127.0.0.1", "127.0.0.1"},
		{"127.0.0.1.", "127.0.0.1"},
		{"127.1", "127.0.0.1"},
		{"127.0.1", "127.0.0.1"},
		{"0", "0.0.0.0"},
		{"2130706433", "127.0.0.1"},
		{"0x7f000001", "127.0.0.1"},
		{"0X7F.1", "127.0.0.1"},
		{"0177.0.0.1", "127.0.0.1"},
		{"0x7f.0x0.0x0.0x1", "127.0.0.1"},
		{"::1", "::1"},
		{"[::1]", "::1"},
		{"0:0:0:0:0:0:0:1", "::1"},
		{"2606:4700::00AB", "2606:4700::ab"},
		{"::ffff:127.0.0.1", "127.0.0.1"},
		{"[::ffff:7f00:1]", "127.0.0.1"},
		{"64:ff9b::7f00:1", "64:ff9b::7f00:1"},
	} {
		if got, err := CanonicalHost(tt.in); err != nil || got != tt.want {
			t.Errorf("CanonicalHost(%q) = %q, %v; want %q", tt.in, got, err, tt.want)
		}
	}
}

func TestCanonicalHostRefuses(t *testing.T) {
	for _, tt := range []struct{ in, err string }{
		{"", "empty host"},
		{".", "empty host"},
		{"a..b", "empty part between two dots"},
		{"example.org..", "empty part between two dots"},
		{".example.org", "empty part between two dots"},
		{"-a.example", "a part of a name can't begin or end with a hyphen"},
		{"example.org@evil.test", `a host can't hold '@'`},
		{"example.org%00.evil.test", `a host can't hold '%'`},
		{"example.org/x", `a host can't hold '/'`},
		{" example.org", `a host can't hold ' '`},
		{"example.org\n", `a host can't hold '\n'`},
		{"bücher.example", `not ASCII; write an internationalised name in its "xn--" form`},
		{"ｅxample.org", `not ASCII; write an internationalised name in its "xn--" form`},
		{"256.1.1.1", "a host whose last part is a number must be an IPv4 address"},
		{"1.2.3.4.5", "a host whose last part is a number must be an IPv4 address"},
		{"089.0.0.1", "a host whose last part is a number must be an IPv4 address"},
		{"4294967296", "a host whose last part is a number must be an IPv4 address"},
		{"example.1", "a host whose last part is a number must be an IPv4 address"},
		{"fe80::1%eth0", "not an IPv6 address"},
		{"a:b", "not an IPv6 address"},
		{"[::1", "not an IPv6 address in brackets"},
		{"[127.0.0.1]", "not an IPv6 address in brackets"},
		{"[fe80::1%eth0]", "not an IPv6 address in brackets"},
		{strings.Repeat("a", 64) + ".test", "part of 64 bytes; a part of a name has at most 63"},
		{strings.Repeat("abcdefg.", 32), "host of 255 bytes; a name has at most 253"},
	} {
		if got, err := CanonicalHost(tt.in); err == nil || err.Error() != tt.err {
			t.Errorf("CanonicalHost(%q) = %q, error %v; want error %q", tt.in, got, err, tt.err)
		}
	}
}

// Two spellings never decide differently: what is canonical stays as it is, and the case of letters, a
// final dot and brackets change nothing.
func FuzzCanonicalHost(f *testing.F) {
	for _, s := range []string{"Example.ORG.", "0x7f.1", "[::1]", "::FFFF:1.2.3.4", "a_b.c-d", "1.2.3.4.5", "0x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		want, err := CanonicalHost(in)
		if err != nil {
			return
		}
		spellings := []string{want, strings.ToUpper(in), strings.ToLower(in)}
		if addr, err := netip.ParseAddr(want); err == nil {
			if addr.Is4In6() || addr.Zone() != "" {
				t.Errorf("%q gives %q, which has another spelling", in, want)
			}
			if addr.Is6() {
				spellings = append(spellings, "["+want+"]", addr.StringExpanded())
			} else {
				spellings = append(spellings, want+".", "::ffff:"+want, "[::ffff:"+want+"]")
			}
		} else {
			spellings = append(spellings, want+".")
		}
		for _, s := range spellings {
			if got, err := CanonicalHost(s); err != nil || got != want {
				t.Errorf("%q gives %q, but its spelling %q gives %q, %v", in, want, s, got, err)
			}
		}
	})
}
