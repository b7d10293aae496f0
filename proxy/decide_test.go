package proxy

import (
	"net/netip"
	"strings"
	"testing"
)

func policyOf(t testing.TB, c Config) *Policy {
	t.Helper()
	p, err := NewPolicy(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDecide(t *testing.T) {
	list := Config{
		Mode:  "allowlist",
		Allow: []string{"pypi.org", "*.pythonhosted.org", "db.example:5432", "any.example:*", "93.184.216.34", "10.1.2.3:22", "10.9.9.9"},
		Deny:  []string{"bad.pythonhosted.org", "any.example:25", "*.evil.pythonhosted.org:443"},
		Private: []string{
			"10.1.2.0/24",
		},
	}
	allowed := func(rule string) Verdict { return Verdict{Allow: true, Rule: rule} }
	unlisted := Verdict{Reason: "not in network.allow"}
	for _, tt := range []struct {
		host string
		port int
		want Verdict
	}{
		{"pypi.org", 443, allowed("network.allow: pypi.org")},
		{"PyPI.org", 443, allowed("network.allow: pypi.org")},
		{"pypi.org.", 80, allowed("network.allow: pypi.org")},
		{"files.pythonhosted.org", 443, allowed("network.allow: *.pythonhosted.org")},
		{"a.b.c.pythonhosted.org", 443, allowed("network.allow: *.pythonhosted.org")},
		{"db.example", 5432, allowed("network.allow: db.example:5432")},
		{"any.example", 1, allowed("network.allow: any.example:*")},
		{"93.184.216.34", 443, allowed("network.allow: 93.184.216.34")},
		{"0x5db8d822", 443, allowed("network.allow: 93.184.216.34")},
		{"::ffff:93.184.216.34", 443, allowed("network.allow: 93.184.216.34")},
		{"10.1.2.3", 22, allowed("network.allow: 10.1.2.3:22")},

		{"pythonhosted.org", 443, unlisted}, // the apex is not below itself
		{"evilpypi.org", 443, unlisted},
		{"pypi.org.evil.tld", 443, unlisted},
		{"evilpythonhosted.org", 443, unlisted},
		{"pypi.org", 22, unlisted},
		{"db.example", 443, unlisted},
		{"sub.pypi.org", 443, unlisted},
		{"org", 443, unlisted},
		{"localhost", 80, unlisted},

		{"bad.pythonhosted.org", 443, Verdict{Rule: "network.deny: bad.pythonhosted.org", Reason: "network.deny has bad.pythonhosted.org"}},
		{"BAD.pythonhosted.org.", 8443, Verdict{Rule: "network.deny: bad.pythonhosted.org", Reason: "network.deny has bad.pythonhosted.org"}},
		{"any.example", 25, Verdict{Rule: "network.deny: any.example:25", Reason: "network.deny has any.example:25"}},
		{"x.evil.pythonhosted.org", 443, Verdict{Rule: "network.deny: *.evil.pythonhosted.org:443", Reason: "network.deny has *.evil.pythonhosted.org:443"}},
		{"x.evil.pythonhosted.org", 80, allowed("network.allow: *.pythonhosted.org")},

		{"10.9.9.9", 80, Verdict{Rule: "network.allow: 10.9.9.9", Reason: "10.9.9.9 is private, and network.private does not name it"}},

		{"pypi.org@evil.tld", 443, Verdict{Reason: "not a host: a host can't hold '@'"}},
		{"pypi.org%00.evil.tld", 443, Verdict{Reason: "not a host: a host can't hold '%'"}},
		{"", 443, Verdict{Reason: "not a host: empty host"}},
		{"pypi.org", 0, Verdict{Reason: "not a port"}},
		{"pypi.org", 65536 + 443, Verdict{Reason: "not a port"}},
	} {
		if got := policyOf(t, list).Decide(tt.host, tt.port); got != tt.want {
			t.Errorf("Decide(%q, %d) = %+v, want %+v", tt.host, tt.port, got, tt.want)
		}
	}
}

func TestDecideByMode(t *testing.T) {
	open := policyOf(t, Config{Mode: "allow", Deny: []string{"no.example"}})
	closed := policyOf(t, Config{Mode: "deny", Allow: []string{"pypi.org"}})
	for _, tt := range []struct {
		policy *Policy
		host   string
		reason string // "" if allowed
	}{
		{open, "anything.example", ""},
		{open, "no.example", "network.deny has no.example"},
		{open, "127.1", "127.0.0.1 is loopback, and network.private does not name it"},
		{open, "0", "0.0.0.0 is unspecified, and network.private does not name it"},
		{open, "[64:ff9b::7f00:1]", "64:ff9b::7f00:1 is an IPv4 address behind NAT64, and network.private does not name it"},
		{open, "2002:7f00:1::", "2002:7f00:1:: is an IPv4 address in 6to4 form, and network.private does not name it"},
		{open, "169.254.169.254", "169.254.169.254 is a metadata service, and network.private does not name it"},
		{closed, "pypi.org", `network.mode is "deny"`},
	} {
		got := tt.policy.Decide(tt.host, 443)
		if got.Allow != (tt.reason == "") || got.Reason != tt.reason {
			t.Errorf("%s: Decide(%q) = %+v, want the reason %q", tt.policy.mode, tt.host, got, tt.reason)
		}
	}
}

func TestKnows(t *testing.T) {
	p := policyOf(t, Config{Mode: "allowlist", Allow: []string{"a.example:22", "*.b.example"}, Deny: []string{"x.b.example", "y.b.example:80"}})
	for host, want := range map[string]bool{
		"a.example": true, "b.example": false, "q.b.example": true, "x.b.example": false, "y.b.example": true, "c.example": false, "": false,
	} {
		if got := p.Knows(host); got != want {
			t.Errorf("Knows(%q) = %t, want %t", host, got, want)
		}
	}
	if policyOf(t, Defaults()).Knows("a.example") {
		t.Error("a closed network knows a name")
	}
}

func TestClassOf(t *testing.T) {
	for addr, want := range map[string]string{
		"93.184.216.34":        "",
		"2606:4700::1111":      "",
		"8.8.8.8":              "",
		"172.15.255.255":       "",
		"172.32.0.1":           "",
		"100.63.255.255":       "",
		"100.128.0.1":          "",
		"192.0.1.1":            "",
		"0.0.0.0":              "unspecified",
		"10.255.255.255":       "private",
		"172.31.255.255":       "private",
		"192.168.1.1":          "private",
		"100.127.255.255":      "private (carrier-grade NAT)",
		"127.255.255.254":      "loopback",
		"169.254.1.1":          "link-local",
		"169.254.169.254":      "a metadata service",
		"168.63.129.16":        "a metadata service",
		"fd00:ec2::254":        "a metadata service",
		"198.19.255.255":       "reserved for benchmarks",
		"224.0.0.251":          "multicast",
		"255.255.255.255":      "reserved",
		"::":                   "unspecified",
		"::1":                  "loopback",
		"::ffff:10.0.0.1":      "private",
		"::7f00:1":             "reserved", // IPv4-compatible, long dead
		"::ffff:0:127.0.0.1":   "reserved", // IPv4-translated
		"64:ff9b::a00:1":       "an IPv4 address behind NAT64",
		"64:ff9b:1::a00:1":     "an IPv4 address behind NAT64",
		"2001:0:53aa:64c::1":   "reserved",
		"2002:a00:1::":         "an IPv4 address in 6to4 form",
		"fc00::1":              "private",
		"fe80::1":              "link-local",
		"fec0::1":              "site-local",
		"ff02::1":              "multicast",
		"4000::1":              "reserved",
		"2001:db8::1":          "reserved for documentation",
		"fe80::1%eth0":         "an address of one link",
		"2606:4700::1111%eth0": "an address of one link",
	} {
		if got := classOf(netip.MustParseAddr(addr)); got != want {
			t.Errorf("classOf(%s) = %q, want %q", addr, got, want)
		}
	}
}

func TestJudgeAddress(t *testing.T) {
	p := policyOf(t, Config{Mode: "allow", Private: []string{"127.0.0.1/32", "fd00::/8"}, Deny: []string{"8.8.8.8", "9.9.9.9:53"}})
	own := []netip.Addr{netip.MustParseAddr("93.184.216.1"), netip.MustParseAddr("fd00::1")}
	for _, tt := range []struct {
		addr   string
		port   int
		reason string
	}{
		{"93.184.216.34", 443, ""},
		{"127.0.0.1", 443, ""},
		{"::ffff:127.0.0.1", 443, ""},
		{"127.0.0.2", 443, "127.0.0.2 is loopback, and network.private does not name it"},
		{"fd00::1", 443, ""},
		{"93.184.216.1", 443, "93.184.216.1 is an address of this host, and network.private does not name it"},
		{"8.8.8.8", 443, "network.deny has 8.8.8.8"},
		{"9.9.9.9", 443, ""},
		{"9.9.9.9", 53, "network.deny has 9.9.9.9:53"},
	} {
		err := p.JudgeAddress("x.example", tt.port, netip.MustParseAddr(tt.addr), own)
		got := ""
		if denied, ok := err.(*DeniedError); ok {
			got = denied.Reason
		}
		if got != tt.reason {
			t.Errorf("JudgeAddress(%s, %d) = %q, want %q", tt.addr, tt.port, got, tt.reason)
		}
	}
}

// FuzzDecide looks for two spellings of one destination that are judged differently.
func FuzzDecide(f *testing.F) {
	for _, s := range []string{"pypi.org", "PYPI.ORG.", "a.pythonhosted.org", "127.1", "[::ffff:7f00:1]", "0x5db8d822", "10.1.2.3"} {
		f.Add(s, 443)
	}
	policies := []*Policy{
		policyOf(f, Config{Mode: "allowlist", Allow: []string{"pypi.org", "*.pythonhosted.org:*", "10.1.2.3", "93.184.216.34:443"}, Deny: []string{"bad.pythonhosted.org"}, Private: []string{"10.1.0.0/16"}}),
		policyOf(f, Config{Mode: "allow", Deny: []string{"pypi.org", "93.184.216.34"}}),
	}
	f.Fuzz(func(t *testing.T, host string, port int) {
		canonical, err := CanonicalHost(host)
		if err != nil {
			for _, p := range policies {
				if p.Decide(host, port).Allow {
					t.Errorf("%q is no host, and allowed", host)
				}
			}
			return
		}
		spellings := []string{canonical, strings.ToUpper(host), strings.ToUpper(canonical)}
		if !strings.Contains(canonical, ":") {
			spellings = append(spellings, canonical+".")
		}
		if addr, err := netip.ParseAddr(canonical); err == nil && addr.Is4() {
			spellings = append(spellings, "[::ffff:"+canonical+"]", "::ffff:"+canonical)
		}
		for _, p := range policies {
			want := p.Decide(host, port)
			for _, s := range spellings {
				if got := p.Decide(s, port); got != want {
					t.Errorf("%s: %q gives %+v, its spelling %q gives %+v", p.mode, host, want, s, got)
				}
			}
			if want.Allow && !p.Knows(canonical) {
				t.Errorf("%s: %q is allowed, and not known", p.mode, canonical)
			}
		}
	})
}
