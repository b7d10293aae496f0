package main

import (
	"errors"
	"testing"

	"airlock/sandbox"
)

func TestCheckEgress(t *testing.T) {
	failed := &sandbox.SetupError{Op: "redirect the run's connections", Err: errors.New("no"), Hint: "load nf_tables"}
	const redirected = "connections and names are redirected (nf_tables)"
	for _, tt := range []struct {
		ipv6           bool
		err            error
		mode, upstream string
		environ        []string
		want           check
	}{
		{true, nil, "deny", "", []string{"HTTPS_PROXY=http://p:1"}, check{OK: true, Detail: redirected}},
		{true, nil, "allow", "", nil, check{OK: true, Detail: redirected}},
		{true, nil, "allow", "", []string{"https_proxy=http://p:1"}, check{OK: true, Detail: redirected + "; https_proxy is set on this host, and not used: network.upstream would say so"}},
		{true, nil, "allow", "http://p:1", []string{"https_proxy=http://p:1"}, check{OK: true, Detail: redirected}},
		{true, nil, "allow", "name:http://p:1", nil, check{OK: true, Detail: redirected + "; network.upstream is given names, so that it alone knows what addresses are reached"}},
		{false, nil, "deny", "", nil, check{OK: true, Detail: redirected + "; connections that a run opens to IPv6 addresses are refused, since this kernel has no IPv6, or no NAT for it"}},
		{false, failed, "allow", "", nil, check{Detail: "sandbox: redirect the run's connections: no", Mend: "load nf_tables"}},
	} {
		var s settings
		s.Network.Mode, s.Network.Upstream = tt.mode, tt.upstream
		tt.want.Name, tt.want.Promise = "network", "runs reach the hosts that network allows"
		if got := checkEgress(tt.ipv6, tt.err, s, tt.environ); got != tt.want {
			t.Errorf("%v, %q, %q, %q: %+v, want %+v", tt.err, tt.mode, tt.upstream, tt.environ, got, tt.want)
		}
	}
}
