package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Config is the [network] section of the configuration. The zero value of a list or a text is "none";
// Mode has no zero value that is valid, so begin with [Defaults].
type Config struct {
	// Mode is "deny", "allowlist" or "allow" (any public address).
	Mode string `toml:"mode"`
	// Allow and Deny hold patterns, see [ParsePattern]; Deny wins.
	Allow []string `toml:"allow"`
	Deny  []string `toml:"deny"`
	// Private holds CIDR prefixes that allowed names may resolve to although they are private,
	// loopback or link-local.
	Private []string `toml:"private"`
	// Upstream is the HTTP proxy of the host's network: "http://host:port", or "name:" and that.
	Upstream string `toml:"upstream"`
	// Resolve gives static addresses to names, as in a hosts file.
	Resolve map[string]string `toml:"resolve"`
}

// Modes lists the values of Config.Mode, the strictest first.
var Modes = [...]string{"deny", "allowlist", "allow"}

// Defaults returns the section as it is without any configuration.
func Defaults() Config {
	return Config{Mode: "deny", Allow: []string{}, Deny: []string{}, Private: []string{}, Resolve: map[string]string{}}
}

// Validate reports everything that is wrong with the section, each fault as "network.key: …", joined.
func (c Config) Validate() error {
	var errs []error
	if !slices.Contains(Modes[:], c.Mode) {
		errs = append(errs, fmt.Errorf("network.mode: %q is not one of %s", c.Mode, strings.Join(Modes[:], ", ")))
	}
	for _, list := range []struct {
		key     string
		entries []string
	}{{"allow", c.Allow}, {"deny", c.Deny}} {
		for _, entry := range list.entries {
			if _, err := ParsePattern(entry); err != nil {
				errs = append(errs, fmt.Errorf("network.%s: %q: %w", list.key, entry, err))
			}
		}
	}
	for _, entry := range c.Private {
		if err := checkPrefix(entry); err != nil {
			errs = append(errs, fmt.Errorf("network.private: %q: %w", entry, err))
		}
	}
	for name, addr := range c.Resolve {
		if _, err := CanonicalHost(name); err != nil {
			errs = append(errs, fmt.Errorf("network.resolve: %q: %w", name, err))
		} else if a, err := netip.ParseAddr(addr); err != nil || a.Zone() != "" {
			errs = append(errs, fmt.Errorf("network.resolve: %q: %q is not an IP address", name, addr))
		}
	}
	if err := checkUpstream(c.Upstream); err != nil {
		errs = append(errs, fmt.Errorf("network.upstream: %w", err))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) }) // Resolve is a map
	return errors.Join(errs...)
}

func checkPrefix(s string) error {
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		return errors.New("not a CIDR prefix, as in \"10.0.0.0/8\" or \"127.0.0.1/32\"")
	}
	if masked := prefix.Masked(); masked != prefix {
		return fmt.Errorf("has bits set beyond its length; the prefix is %q", masked)
	}
	return nil
}

// checkUpstream does not repeat the address: it may hold a password.
func checkUpstream(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(strings.TrimPrefix(s, "name:"))
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.Port() == "" ||
		(u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("not the address of an HTTP proxy, as in \"http://proxy.example:3128\" or \"name:http://proxy.example:3128\"")
	}
	if _, err := CanonicalHost(u.Hostname()); err != nil {
		return fmt.Errorf("the host of the proxy: %w", err)
	}
	return nil
}
