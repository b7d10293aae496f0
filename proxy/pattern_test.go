package proxy

import "testing"

func TestParsePattern(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"example.org", "example.org"},
		{"Example.org.", "example.org"},
		{"example.org:443", "example.org:443"},
		{"example.org:*", "example.org:*"},
		{"*.Example.org:8443", "*.example.org:8443"},
		{"127.1:80", "127.0.0.1:80"},
		{"::1", "::1"},
		{"[::1]", "::1"},
		{"[::1]:443", "[::1]:443"},
		{"[::ffff:127.0.0.1]:*", "127.0.0.1:*"},
	} {
		p, err := ParsePattern(tt.in)
		if err != nil || p.String() != tt.want {
			t.Errorf("ParsePattern(%q) = %q, %v; want %q", tt.in, p, err, tt.want)
		}
	}
}

func TestParsePatternRefuses(t *testing.T) {
	for _, tt := range []struct{ in, err string }{
		{"", "empty host"},
		{"*", `"*" alone is no pattern; network.mode = "allow" allows every public address`},
		{"*:443", `"*" alone is no pattern; network.mode = "allow" allows every public address`},
		{"a.*.b", `"*" can stand only for a whole beginning, as in "*.example.org"`},
		{"*example.org", `"*" can stand only for a whole beginning, as in "*.example.org"`},
		{"*.*.org", `"*" can stand only for a whole beginning, as in "*.example.org"`},
		{"*.127.0.0.1", "an address has no names below it"},
		{"example.org:0", "a port is a number from 1 to 65535, or *"},
		{"example.org:0443", "a port is a number from 1 to 65535, or *"},
		{"example.org:65536", "a port is a number from 1 to 65535, or *"},
		{"example.org:", "a port is a number from 1 to 65535, or *"},
		{"example.org:+1", "a port is a number from 1 to 65535, or *"},
		{"2606:4700:::443", `an IPv6 address with a port is written in brackets, as in "[::1]:443"`},
		{"https://example.org", `write the host alone, without "https://" or a path, as in "example.org"`},
		{"example.org/x", `write the host alone, without "https://" or a path, as in "example.org"`},
		{"10.0.0.0/8", "a range of addresses is no host; network.private takes ranges"},
	} {
		if p, err := ParsePattern(tt.in); err == nil || err.Error() != tt.err {
			t.Errorf("ParsePattern(%q) = %q, error %v; want error %q", tt.in, p, err, tt.err)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		p, q string
		want bool
	}{
		{"example.org", "EXAMPLE.org.", true},
		{"example.org", "example.org:443", true},
		{"example.org", "example.org:80", true},
		{"example.org", "example.org:22", false},
		{"example.org", "example.org:*", false},
		{"example.org:*", "example.org", true},
		{"example.org:443", "example.org", false},
		{"example.org:443", "example.org:443", true},
		{"*.example.org", "example.org", false},
		{"*.example.org", "a.example.org", true},
		{"*.example.org", "a.b.example.org", true},
		{"*.example.org", "*.example.org", true},
		{"*.example.org", "*.b.example.org", true},
		{"*.b.example.org", "*.example.org", false},
		{"a.example.org", "*.example.org", false},
		{"example.org", "*.example.org", false},
		{"*.example.org", "evilexample.org", false},
		{"*.example.org", "example.org.evil.test", false},
		{"127.0.0.1", "127.1", true},
		{"127.0.0.1", "[::ffff:127.0.0.1]", true},
		{"::1", "[0:0::1]:443", true},
		{"::1", "127.0.0.1", false},
	} {
		p, q := mustParse(t, tt.p), mustParse(t, tt.q)
		if got := p.Covers(q); got != tt.want {
			t.Errorf("%q covers %q: %v, want %v", tt.p, tt.q, got, tt.want)
		}
	}
}

// A pattern's canonical spelling is the same pattern, covers it and is covered by it.
func FuzzParsePattern(f *testing.F) {
	for _, s := range []string{"*.example.org:443", "[::1]:*", "127.1", "a:b:c", "::1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		p, err := ParsePattern(in)
		if err != nil {
			return
		}
		again, err := ParsePattern(p.String())
		if err != nil || again != p || !p.Covers(again) || !again.Covers(p) {
			t.Errorf("%q is %q, read back as %q, %v", in, p, again, err)
		}
	})
}

func mustParse(t *testing.T, s string) Pattern {
	t.Helper()
	p, err := ParsePattern(s)
	if err != nil {
		t.Fatalf("ParsePattern(%q): %v", s, err)
	}
	return p
}
