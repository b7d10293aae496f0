package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Pattern is an entry of network.allow or network.deny in canonical form. The zero value matches
// nothing and is made by no successful [ParsePattern].
type Pattern struct {
	host string // canonical
	sub  bool   // "*.host": every name below host, not host itself
	port int    // 1 to 65535; anyPort; defaultPorts
}

const (
	defaultPorts = 0  // 80 and 443
	anyPort      = -1 // ":*"
)

// ParsePattern reads "host", "*.host", "host:port" or "host:*". The error says what is wrong with the
// entry, and does not repeat it.
func ParsePattern(s string) (Pattern, error) {
	if _, err := netip.ParsePrefix(s); err == nil {
		return Pattern{}, errors.New("a range of addresses is no host; network.private takes ranges")
	}
	if strings.Contains(s, "/") {
		return Pattern{}, errors.New(`write the host alone, without "https://" or a path, as in "example.org"`)
	}
	host, port, err := splitPort(s)
	if err != nil {
		return Pattern{}, err
	}
	p := Pattern{port: port}
	if host == "*" {
		return Pattern{}, errors.New(`"*" alone is no pattern; network.mode = "allow" allows every public address`)
	}
	host, p.sub = strings.CutPrefix(host, "*.")
	if strings.Contains(host, "*") {
		return Pattern{}, errors.New(`"*" can stand only for a whole beginning, as in "*.example.org"`)
	}
	if p.host, err = CanonicalHost(host); err != nil {
		return Pattern{}, err
	}
	if _, err := netip.ParseAddr(p.host); err == nil && p.sub {
		return Pattern{}, errors.New("an address has no names below it")
	}
	return p, nil
}

// splitPort takes the port off a pattern. An IPv6 address without brackets has no port.
func splitPort(s string) (host string, port int, err error) {
	if _, err := netip.ParseAddr(s); err == nil {
		return s, defaultPorts, nil
	}
	i := strings.LastIndexByte(s, ':')
	if i < 0 || strings.HasSuffix(s, "]") {
		return s, defaultPorts, nil
	}
	host, text := s[:i], s[i+1:]
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		return "", 0, errors.New("an IPv6 address with a port is written in brackets, as in \"[::1]:443\"")
	}
	if text == "*" {
		return host, anyPort, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' {
		return "", 0, errors.New("a port is a number from 1 to 65535, or *")
	}
	return host, int(n), nil
}

// Covers reports whether every host and port that q matches is matched by p too.
func (p Pattern) Covers(q Pattern) bool {
	return p.coversHost(q) && p.coversPort(q)
}

func (p Pattern) coversHost(q Pattern) bool {
	switch {
	case p.host == q.host:
		return p.sub == q.sub
	case p.sub:
		return strings.HasSuffix(q.host, "."+p.host)
	}
	return false
}

func (p Pattern) coversPort(q Pattern) bool {
	switch {
	case p.port == anyPort, p.port == q.port:
		return true
	case p.port == defaultPorts:
		return q.port == 80 || q.port == 443
	}
	return false
}

// String gives the canonical spelling, which [ParsePattern] reads back as the same pattern.
func (p Pattern) String() string {
	host := p.host
	if strings.Contains(host, ":") && p.port != defaultPorts {
		host = "[" + host + "]"
	}
	if p.sub {
		host = "*." + host
	}
	switch p.port {
	case defaultPorts:
		return host
	case anyPort:
		return host + ":*"
	}
	return fmt.Sprintf("%s:%d", host, p.port)
}
