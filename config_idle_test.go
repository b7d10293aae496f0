package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A list of hosts beside a mode that does not ask it is told, unless what set the mode was meant to close the network over it.
func TestIdleSettings(t *testing.T) {
	const hosts = `; hint: network.mode = "allowlist" lets runs reach the hosts of network.allow`
	const but = `, "allow" every public address but those of network.deny`
	const yours = "; that is for your own configuration to say, not for a project's"
	closed := func(key, mode string) string {
		return key + `: has no effect, since network.mode is "deny" (` + mode + `): runs reach no host at all` + hosts
	}
	for _, tt := range []struct {
		name, user, project string
		variables           []string
		want                []string
	}{
		{"nothing", "", "", nil, nil},
		{"allow alone", "[network]\nallow = [\"a.test\"]\n", "", nil, []string{"user.toml:2: " + closed("network.allow", "default")}},
		{"deny alone", "[network]\ndeny = [\"a.test\"]\n", "", nil, []string{"user.toml:2: " + closed("network.deny", "default") + but}},
		{"both", "[network]\nmode = \"deny\"\nallow = [\"a.test\"]\ndeny = [\"b.test\"]\n", "", nil, []string{
			"user.toml:3: " + closed("network.allow", "user.toml:2"), "user.toml:4: " + closed("network.deny", "user.toml:2") + but,
		}},
		{"empty lists", "[network]\nallow = []\ndeny = []\n", "", nil, nil},
		{"what an installer has of the network", "[network]\nresolve = { \"a.test\" = \"127.0.0.1\" }\nprivate = [\"127.0.0.1/32\"]\nupstream = \"http://p.test:1\"\n", "", nil, nil},
		{"in use", "[network]\nmode = \"allowlist\"\nallow = [\"a.test\"]\ndeny = [\"b.test\"]\n", "", nil, nil},
		{"open", "[network]\nmode = \"allow\"\nallow = [\"a.test\"]\ndeny = [\"b.test\"]\n", "", nil, []string{
			`user.toml:3: network.allow: narrows nothing, since network.mode is "allow" (user.toml:2): runs reach every public address; hint: network.mode = "allowlist" lets runs reach these hosts and no other`,
		}},
		{"closed by a variable", "[network]\nmode = \"allowlist\"\nallow = [\"a.test\"]\n", "", []string{"AIRLOCK_NETWORK_MODE=deny"}, nil},
		{"a variable over a closed network", "[network]\nmode = \"deny\"\n", "", []string{"AIRLOCK_NETWORK_ALLOW=a.test"}, []string{"AIRLOCK_NETWORK_ALLOW: " + closed("network.allow", "user.toml:2")}},
		{"closed by the project", "[network]\nmode = \"allowlist\"\nallow = [\"a.test\"]\n", "[network]\nmode = \"deny\"\n", nil, nil},
		{"of the project", "", "[network]\nallow = [\"a.test\"]\n", nil, []string{".airlock.toml:2: " + closed("network.allow", "default") + yours}},
		{"the project denies more", "[network]\ndeny = [\"a.test\"]\n", "[network]\ndeny = [\"b.test\"]\n", nil, []string{".airlock.toml:2: " + closed("network.deny", "default") + but + yours}},
		{"the project closes what it names", "[network]\nmode = \"allowlist\"\nallow = [\"a.test\"]\n", "[network]\nmode = \"deny\"\nallow = [\"a.test\"]\n", nil, []string{
			".airlock.toml:3: " + closed("network.allow", ".airlock.toml:2"),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := userOf(t, tt.user, tt.variables...)
			if tt.project != "" {
				var err error
				if s, err = s.under(policyOf(tt.project), true); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, f := range s.idle() {
				got = append(got, forModel(f).Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Each is logged once, and again only after it had an effect.
func TestIdleLog(t *testing.T) {
	var b bytes.Buffer
	l := idleLog{log: slog.New(slog.NewTextHandler(&b, nil))}
	idle, used := userOf(t, "[network]\nallow = [\"a.test\"]\n"), userOf(t, "[network]\nmode = \"allowlist\"\nallow = [\"a.test\"]\n")
	for i, s := range []settings{idle, idle, used, idle} {
		l.say(s)
		if got, want := strings.Count(b.String(), "level=WARN"), []int{1, 1, 1, 2}[i]; got != want {
			t.Errorf("after %d: %d lines, want %d:\n%s", i, got, want, &b)
		}
	}
}
