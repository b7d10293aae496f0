package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Bounds of DNS, in bytes of the textual form without the final dot.
const (
	maxName  = 253
	maxLabel = 63
)

// CanonicalHost gives the one spelling of a host that is compared: names in lower case without the
// final dot, IPv4 addresses as four decimal numbers, IPv6 addresses as RFC 5952 has them.
//
// It knows every spelling that a resolver of a C library takes for an IPv4 address ("127.1",
// "0x7f000001", "2130706433", "0177.0.0.1"), brackets around an IPv6 address, and IPv4 addresses mapped
// into IPv6. What is neither a name nor an address is an error: a name whose last label is a number
// can't exist, and characters that no host name has are refused rather than dropped.
func CanonicalHost(s string) (string, error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		if !ok || err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", errors.New("not an IPv6 address in brackets")
		}
		return addr.Unmap().String(), nil
	}
	if strings.Contains(s, ":") {
		addr, err := netip.ParseAddr(s)
		if err != nil || addr.Zone() != "" {
			return "", errors.New("not an IPv6 address")
		}
		return addr.Unmap().String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	if err := checkName(name); err != nil {
		return "", err
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if !looksNumeric(last) {
		return name, nil
	}
	addr, ok := parseIPv4(name)
	if !ok {
		return "", errors.New("a host whose last part is a number must be an IPv4 address")
	}
	return addr.String(), nil
}

// checkName judges the letters and lengths of a name in lower case. Underscores are taken: service
// names in use have them.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("empty host")
	case len(name) > maxName:
		return fmt.Errorf("host of %d bytes; a name has at most %d", len(name), maxName)
	}
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case label == "":
			return errors.New("empty part between two dots")
		case len(label) > maxLabel:
			return fmt.Errorf("part of %d bytes; a part of a name has at most %d", len(label), maxLabel)
		case label[0] == '-' || label[len(label)-1] == '-':
			return errors.New("a part of a name can't begin or end with a hyphen")
		}
		for i := range len(label) {
			switch c := label[i]; {
			case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			case c >= 0x80:
				return errors.New(`not ASCII; write an internationalised name in its "xn--" form`)
			default:
				return fmt.Errorf("a host can't hold %q", c)
			}
		}
	}
	return nil
}

// looksNumeric reports whether a last label makes the whole host an IPv4 address to a resolver: only
// digits, or "0x" and only hexadecimal digits.
func looksNumeric(label string) bool {
	digits, set := label, "0123456789"
	if rest, ok := strings.CutPrefix(label, "0x"); ok {
		digits, set = rest, "0123456789abcdef"
	}
	return strings.Trim(digits, set) == ""
}

// parseIPv4 reads one to four numbers, decimal, octal ("0…") or hexadecimal ("0x…"), as inet_aton(3)
// does: the last one fills the bytes that are left.
func parseIPv4(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		n, ok := parseNumber(part)
		if !ok || n>>bits != 0 {
			return netip.Addr{}, false
		}
		value = value<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

func parseNumber(s string) (uint64, bool) {
	base := 10
	if rest, ok := strings.CutPrefix(s, "0x"); ok {
		if rest == "" { // "0x" is zero to inet_aton
			return 0, true
		}
		s, base = rest, 16
	} else if len(s) > 1 && s[0] == '0' {
		s, base = s[1:], 8
	}
	n, err := strconv.ParseUint(s, base, 32)
	return n, err == nil
}
