// Package proxy says what a run may reach over the network.
//
// In this version no run reaches anything: its network namespace holds a loopback interface and
// nothing else, and that is enforced by package sandbox. What stands here is the [network] section of
// the configuration, with the language of its host patterns, so that a policy is written and checked
// today in the form that it keeps.
//
// # What an attacker controls
//
// The project policy, a file in the workspace, may name patterns; it only ever narrows the user's,
// which [Pattern.Covers] decides. Everything in a pattern is canonical before it is compared (see
// [CanonicalHost]), so that no spelling of a name or an address is judged differently from another.
//
// # Life cycle
//
//	c := proxy.Defaults()
//	c.Allow = []string{"example.org", "*.example.com:443"}
//	if err := c.Validate(); err != nil {
//		return err // names the key and the entry
//	}
//	mine, _ := proxy.ParsePattern("*.example.com:443")
//	theirs, _ := proxy.ParsePattern("cdn.example.com:443")
//	mine.Covers(theirs) // true
//
// # Vocabulary
//
// A host is a DNS name or an IP address. A pattern is a host, or "*." and a host, which stands for
// every name below that host at any depth but not for the host itself; with ":port" it stands for that
// port, with ":*" for any port, and without either for ports 80 and 443. The apex of "*.host" is host.
//
// # Limitations
//
// Names are ASCII: an internationalised name is written in its "xn--" form. There is no list of public
// suffixes: "*.com" is a pattern like any other.
package proxy
