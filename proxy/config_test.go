package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   []string // the faults, sorted; none if the section is valid
	}{
		{"defaults", func(*Config) {}, nil},
		{"full", func(c *Config) {
			c.Mode = "allowlist"
			c.Allow = []string{"example.org", "*.example.org:443"}
			c.Deny = []string{"bad.example.org:*"}
			c.Private = []string{"10.0.0.0/8", "::1/128"}
			c.Upstream = "name:http://user:secret@proxy.example:3128"
			c.Resolve = map[string]string{"index.test": "127.0.0.1", "mapped.test": "::ffff:127.0.0.1"}
		}, nil},
		{"mode", func(c *Config) { c.Mode = "open" }, []string{`network.mode: "open" is not one of deny, allowlist, allow`}},
		{"no mode", func(c *Config) { c.Mode = "" }, []string{`network.mode: "" is not one of deny, allowlist, allow`}},
		{"each bad pattern", func(c *Config) {
			c.Allow = []string{"ok.test", "*", "a b"}
			c.Deny = []string{"x:0"}
		}, []string{
			`network.allow: "*": "*" alone is no pattern; network.mode = "allow" allows every public address`,
			`network.allow: "a b": a host can't hold ' '`,
			`network.deny: "x:0": a port is a number from 1 to 65535, or *`,
		}},
		{"private", func(c *Config) { c.Private = []string{"10.0.0.0", "10.0.0.1/8"} }, []string{
			`network.private: "10.0.0.0": not a CIDR prefix, as in "10.0.0.0/8" or "127.0.0.1/32"`,
			`network.private: "10.0.0.1/8": has bits set beyond its length; the prefix is "10.0.0.0/8"`,
		}},
		{"resolve", func(c *Config) { c.Resolve = map[string]string{"a b": "127.0.0.1", "x.test": "y.test"} }, []string{
			`network.resolve: "a b": a host can't hold ' '`,
			`network.resolve: "x.test": "y.test" is not an IP address`,
		}},
		{"upstream", func(c *Config) { c.Upstream = "socks5://user:secret@proxy.example:1080" }, []string{
			`network.upstream: not the address of an HTTP proxy, as in "http://proxy.example:3128" or "name:http://proxy.example:3128"`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Defaults()
			tt.change(&c)
			var got []string
			if err := c.Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
