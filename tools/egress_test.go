package tools

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"airlock/proxy"
	"airlock/sandbox"
)

func TestAttachTo(t *testing.T) {
	mounts := []sandbox.Mount{
		{Kind: sandbox.MountFile, Target: "/etc/hosts", Content: []byte("h")},
		{Kind: sandbox.MountFile, Target: "/etc/resolv.conf", Content: []byte("none")},
	}
	spec := sandbox.Spec{Mounts: mounts, Env: []string{"A=1", "http_proxy=mine"}}
	e := &egress{ports: sandbox.Egress{RedirectPort: 61001, ProxyPort: 61002}}
	e.attachTo(&spec)
	if spec.Network != sandbox.NetworkRedirected || spec.Egress != e.ports {
		t.Errorf("network %q at %+v", spec.Network, spec.Egress)
	}
	if got := string(spec.Mounts[1].Content); got != sandbox.ResolvConf || string(mounts[1].Content) != "none" {
		t.Errorf("resolv.conf %q, and that of all runs %q", got, mounts[1].Content)
	}
	want := []string{
		"A=1", "http_proxy=mine", "HTTP_PROXY=http://127.0.0.1:61002",
		"https_proxy=http://127.0.0.1:61002", "HTTPS_PROXY=http://127.0.0.1:61002",
		"all_proxy=socks5h://127.0.0.1:61002", "ALL_PROXY=socks5h://127.0.0.1:61002",
		"no_proxy=localhost,127.0.0.1,::1", "NO_PROXY=localhost,127.0.0.1,::1",
	}
	if !slices.Equal(spec.Env, want) {
		t.Errorf("environment %q, want %q", spec.Env, want)
	}
}

func TestEgressPorts(t *testing.T) {
	for range 1000 {
		e := &egress{ports: choosePorts()}
		if e.ports.RedirectPort < firstEgressPort || e.ports.ProxyPort <= e.ports.RedirectPort || e.ports.ProxyPort > 65535 {
			t.Fatalf("ports %+v", e.ports)
		}
	}
}

func TestToAllow(t *testing.T) {
	unlisted := reasonOf(t, "a.test")
	for _, tt := range []struct {
		denied []proxy.DeniedError
		want   string
	}{
		{nil, ""},
		{[]proxy.DeniedError{{Host: "a.test", Port: 443, Reason: "network.deny has a.test"}}, ""},
		{[]proxy.DeniedError{{Host: "a.test", Port: 443, Reason: unlisted}}, "a.test"},
		{[]proxy.DeniedError{{Host: "a.test", Reason: unlisted}}, "a.test"},
		{[]proxy.DeniedError{{Host: "10.0.0.1", Port: 22, Reason: reasonOf(t, "10.0.0.1")}, {Host: "a.test", Port: 22, Reason: unlisted}}, "a.test:22"},
		{[]proxy.DeniedError{{Host: "1.1.1.1", Port: 22, Reason: reasonOf(t, "1.1.1.1")}}, "1.1.1.1:22"},
		{[]proxy.DeniedError{{Host: "b.test", Reason: "other"}, {Host: "a.test", Port: 22, Reason: unlisted}}, "a.test:22"},
	} {
		if got := toAllow(tt.denied); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.denied, got, tt.want)
		}
	}
}

// policyReason is what a policy says of a host that nobody allowed.
// reasonOf is why a host is refused while nothing is allowed.
func reasonOf(t *testing.T, host string) string {
	c := proxy.Defaults()
	c.Mode = "allowlist"
	p, err := proxy.NewPolicy(c)
	if err != nil {
		t.Fatal(err)
	}
	return p.Decide(host, 443).Reason
}

// A run that tries names without end does not fill the text of its result.
func TestNetworkLine(t *testing.T) {
	var refusals []proxy.DeniedError
	for i := range 13 {
		refusals = append(refusals, proxy.DeniedError{Host: fmt.Sprintf("n%d.test", i), Reason: "r"})
	}
	refusals = append(refusals, proxy.DeniedError{Host: "a.test", Port: 22, Reason: "s"})
	const want = "network: refused n0.test, n1.test, n2.test, n3.test, n4.test, n5.test, n6.test, n7.test, n8.test, n9.test and 3 more (r); a.test:22 (s)"
	if got := networkLine(refusals); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Nor does one whose hosts don't answer.
func TestNotReached(t *testing.T) {
	var unreached []string
	named := ""
	for i := range maxNamed {
		unreached = append(unreached, (&proxy.UnreachedError{Host: fmt.Sprintf("n%d.test", i), Port: 1, Err: errors.New("refused")}).Error())
		named += fmt.Sprintf("; n%d.test:1 could not be reached: refused", i)
	}
	all := "the network allows it, but " + named[len("; "):]
	more := (&proxy.UnreachedError{Host: "a.test", Port: 2, Err: errors.New("lost")}).Error()
	for _, tt := range []struct {
		unreached []string
		want      string
	}{
		{nil, ""},
		{[]string{more}, "the network allows it, but a.test:2 could not be reached: lost"},
		{unreached, all},
		{append(unreached, more, more), all + ", and 2 more"},
	} {
		if got := notReached(tt.unreached); got != tt.want {
			t.Errorf("of %d: got %q, want %q", len(tt.unreached), got, tt.want)
		}
	}
}
