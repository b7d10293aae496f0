package proxy

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// Policy is the [network] section made ready to be asked. It holds no state and is safe for
// concurrent use.
type Policy struct {
	mode    string
	allow   []Pattern
	deny    []Pattern
	private []netip.Prefix
	resolve map[string]netip.Addr
}

// NewPolicy makes the policy of a configuration, or returns what [Config.Validate] does.
func NewPolicy(c Config) (*Policy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Policy{mode: c.Mode, resolve: map[string]netip.Addr{}}
	// Validate has read all of these without an error.
	for _, entry := range c.Allow {
		pattern, _ := ParsePattern(entry)
		p.allow = append(p.allow, pattern)
	}
	for _, entry := range c.Deny {
		pattern, _ := ParsePattern(entry)
		p.deny = append(p.deny, pattern)
	}
	for _, entry := range c.Private {
		p.private = append(p.private, netip.MustParsePrefix(entry))
	}
	for name, entry := range c.Resolve {
		host, _ := CanonicalHost(name)
		p.resolve[host] = netip.MustParseAddr(entry).Unmap()
	}
	return p, nil
}

// Verdict is what a policy says of a destination.
type Verdict struct {
	Allow bool
	// Rule is the entry that decided, as "network.deny: *.example.org", or "" if none did.
	Rule string
	// Reason says why a destination is refused, as it continues "refused example.org:443 (…)".
	Reason string
}

const (
	reasonClosed    = `network.mode is "deny"`
	reasonNotListed = "not in network.allow"
)

// Decide judges a host, in any spelling, and a port. It asks nobody: what a name resolves to is judged
// when it is dialled (see [Policy.JudgeAddress]), which can still refuse what Decide allows. A host
// that is an address is judged as one here.
func (p *Policy) Decide(host string, port int) Verdict {
	canonical, err := CanonicalHost(host)
	if err != nil {
		return Verdict{Reason: "not a host: " + err.Error()}
	}
	if port < 1 || port > 65535 {
		return Verdict{Reason: "not a port"}
	}
	if rule, found := p.denied(canonical, port); found {
		return Verdict{Rule: "network.deny: " + rule.String(), Reason: "network.deny has " + rule.String()}
	}
	v := Verdict{Allow: true}
	switch p.mode {
	case "allow":
		v.Rule = `network.mode: "allow"`
	case "allowlist":
		i := slices.IndexFunc(p.allow, func(rule Pattern) bool { return rule.matches(canonical, port) })
		if i < 0 {
			reason := reasonNotListed
			if addr, err := netip.ParseAddr(canonical); err == nil && p.addressReason(addr) != "" {
				reason += "; " + p.addressReason(addr) // to list it would not be enough
			}
			return Verdict{Reason: reason}
		}
		v.Rule = "network.allow: " + p.allow[i].String()
	default:
		return Verdict{Reason: reasonClosed}
	}
	if addr, err := netip.ParseAddr(canonical); err == nil {
		if reason := p.addressReason(addr); reason != "" {
			return Verdict{Rule: v.Rule, Reason: reason}
		}
	}
	return v
}

// Knows reports whether a run may learn that a name is there at all: whether there is a port at which
// [Policy.Decide] would allow it. host is canonical.
func (p *Policy) Knows(host string) bool {
	if slices.ContainsFunc(p.deny, func(rule Pattern) bool { return rule.port == defaultPorts && rule.matchesHost(host) }) {
		return false
	}
	switch p.mode {
	case "allow":
		return true
	case "allowlist":
		return slices.ContainsFunc(p.allow, func(rule Pattern) bool { return rule.matchesHost(host) })
	}
	return false
}

// denied finds the entry of network.deny that covers a destination. One without a port covers every
// port: who writes a host down there means all of it.
func (p *Policy) denied(host string, port int) (Pattern, bool) {
	for _, rule := range p.deny {
		if rule.matchesHost(host) && (rule.port == defaultPorts || rule.matchesPort(port)) {
			return rule, true
		}
	}
	return Pattern{}, false
}

// matches reports whether a pattern stands for a destination. host is canonical.
func (p Pattern) matches(host string, port int) bool {
	return p.matchesHost(host) && p.matchesPort(port)
}

func (p Pattern) matchesHost(host string) bool {
	if host == "" || p.host == "" {
		return false
	}
	return p.coversHost(Pattern{host: host})
}

func (p Pattern) matchesPort(port int) bool {
	return p.coversPort(Pattern{port: port})
}

// JudgeAddress judges the address that a connection to an allowed destination would really go to. The
// error is a *[DeniedError] that says what is wrong with the address. own are the addresses of this
// host's interfaces.
func (p *Policy) JudgeAddress(host string, port int, addr netip.Addr, own []netip.Addr) error {
	addr = addr.Unmap()
	reason := p.addressReason(addr)
	if reason == "" && slices.Contains(own, addr) && !p.namesPrivate(addr) {
		reason = addr.String() + " is an address of this host, and network.private does not name it"
	}
	if reason == "" {
		if rule, found := p.denied(addr.String(), port); found {
			reason = "network.deny has " + rule.String()
		}
	}
	if reason == "" {
		return nil
	}
	return &DeniedError{Host: host, Port: port, Reason: reason}
}

func (p *Policy) addressReason(addr netip.Addr) string {
	class := classOf(addr)
	if class == "" || p.namesPrivate(addr) {
		return ""
	}
	return fmt.Sprintf("%s is %s, and network.private does not name it", addr, class)
}

func (p *Policy) namesPrivate(addr netip.Addr) bool {
	return slices.ContainsFunc(p.private, func(prefix netip.Prefix) bool {
		return prefix.Contains(addr) || prefix.Addr().Is4In6() && prefix.Contains(netip.AddrFrom16(addr.As16()))
	})
}

// DeniedError says that the policy refuses a destination.
type DeniedError struct {
	Host   string
	Port   int // 0 if only the name was asked for
	Reason string
}

// Unlisted reports whether an entry of network.allow, and nothing more, would mend it.
func (e *DeniedError) Unlisted() bool { return e.Reason == reasonNotListed }

// Error names the destination and the reason.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s is refused: %s", e.Destination(), e.Reason)
}

// Destination gives "host:port", or "host" where there is no port.
func (e *DeniedError) Destination() string {
	if e.Port == 0 {
		return e.Host
	}
	return net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
}
