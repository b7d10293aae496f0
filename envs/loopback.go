package envs

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// checkNotOwn refuses an index or a repository at an address of the loopback: in an installer's sandbox that is the sandbox itself,
// where nobody listens, and the installer would say that there is no such package. key is where the address is configured.
func checkNotOwn(key, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return nil // a name is judged when it is dialled, and what is no address was refused with the configuration
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	addr, err := netip.ParseAddr(host)
	if host != "localhost" && !strings.HasSuffix(host, ".localhost") && (err != nil || !addr.Unmap().IsLoopback() && !addr.Unmap().IsUnspecified()) {
		return nil
	}
	named := "here.test"
	if port := u.Port(); port != "" {
		named += ":" + port
	}
	return fmt.Errorf(`%s is at %s, which is the installer's own sandbox in there and never this machine. The user can give this machine a name: `+
		`network.resolve = {"here.test" = "127.0.0.1"} and network.private = ["127.0.0.1/32"], and %s with %s in place of %s`, key, u.Host, key, named, u.Host)
}
