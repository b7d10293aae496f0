package main

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"airlock/envs"
	"airlock/proxy"
	"airlock/tools"
)

// An installer reaches the index and what belongs to it, and nothing else, whatever the network of runs is.
func TestInstallNetwork(t *testing.T) {
	private := envs.DefaultPackages()
	private.Index, private.Hosts = "http://index.test:8080/simple", []string{"files.test", "cdn.test:8443"}
	for _, tt := range []struct {
		packages envs.Packages
		network  proxy.Config
		yes, no  []string
	}{
		{
			envs.DefaultPackages(), proxy.Defaults(),
			[]string{"pypi.org:443", "files.pythonhosted.org:443"},
			[]string{"pypi.org:22", "example.org:443", "evilpypi.org:443", "x.pypi.org:443"},
		},
		{
			envs.DefaultPackages(),
			proxy.Config{Mode: "allow", Allow: []string{"example.org"}, Deny: []string{"pypi.org"}},
			[]string{"pypi.org:443"},
			[]string{"example.org:443"},
		},
		{private, proxy.Defaults(), []string{"index.test:8080", "files.test:443", "cdn.test:8443"}, []string{"index.test:80", "pypi.org:443", "cdn.test:443"}},
	} {
		policy, err := proxy.NewPolicy(tools.InstallNetwork(tt.network, tt.packages.Destinations()))
		if err != nil {
			t.Fatal(err)
		}
		for want, list := range map[bool][]string{true: tt.yes, false: tt.no} {
			for _, to := range list {
				host, port, _ := strings.Cut(to, ":")
				n := map[string]int{"443": 443, "80": 80, "22": 22, "8080": 8080, "8443": 8443}[port]
				if v := policy.Decide(host, n); v.Allow != want {
					t.Errorf("%s of %s: %+v, want %t", to, tt.packages.Index, v, want)
				}
			}
		}
	}
}

// Whatever else says how a run's connections are made holds for an installer, too.
func TestInstallNetworkIsTheHosts(t *testing.T) {
	runs := proxy.Config{
		Mode: "deny", Allow: []string{"a.test"}, Deny: []string{"b.test"},
		Private: []string{"10.0.0.0/8"}, Upstream: "http://proxy.test:3128", Resolve: map[string]string{"index.test": "10.0.0.1"},
	}
	want := runs
	want.Mode, want.Allow, want.Deny = "allowlist", []string{"index.test:443"}, nil
	if diff := cmp.Diff(want, tools.InstallNetwork(runs, []string{"index.test:443"})); diff != "" {
		t.Errorf("the network of an installer (-want +got):\n%s", diff)
	}
}

// terminalOf is a terminal at which somebody types one answer.
type terminalOf struct {
	io.Reader
	bytes.Buffer
}

func (t *terminalOf) Read(p []byte) (int, error) { return t.Reader.Read(p) }
func (t *terminalOf) Close() error               { return nil }

func TestApprove(t *testing.T) {
	store, err := envs.OpenStore(filepath.Join(t.TempDir(), "envs"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	leave := func(digest string) envs.Request {
		t.Helper()
		r, err := store.Leave(ctx, envs.Request{
			Environment: "default", Language: "python", Asked: []string{"six"}, Names: []string{"six"}, Digest: strings.Repeat(digest, 64),
			Question: "Install 1 package?\n\x1b[2Jsix 1.0\u202e",
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := leave("a")
	for _, tt := range []struct {
		id, answer string
		always     bool
		state      string
		err        string
	}{
		{"00000000", "yes\n", false, envs.Waiting, "there is no request"},
		{"../x", "yes\n", false, envs.Waiting, "there is no request"},
		{r.ID, "no\n", false, envs.Waiting, "not yes"},
		{r.ID, "\n", false, envs.Waiting, "not yes"},
		{r.ID, "yes\n", true, envs.Approved, ""},
		{r.ID, "", false, envs.Approved, ""}, // approved already
	} {
		tty := &terminalOf{Reader: strings.NewReader(tt.answer)}
		err := approve(ctx, store, tt.id, tt.always, io.Discard, func() (io.ReadWriteCloser, error) { return tty, nil })
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s %q: error %v, want %q", tt.id, tt.answer, err, tt.err)
		}
		if strings.ContainsAny(tty.String(), "\x1b\u202e") {
			t.Errorf("the question moves the cursor: %q", tty.String())
		}
		if now, err := store.Request(r.ID); err != nil || now.State != tt.state {
			t.Errorf("%q: the request is %q, %v; want %q", tt.answer, now.State, err, tt.state)
		}
	}
	if grants, err := store.Grants(); err != nil || len(grants) != 1 || grants[0].Environment != "default" {
		t.Errorf("grants: %v, %v", grants, err)
	}
	none := func() (io.ReadWriteCloser, error) { return nil, errors.New("no tty") }
	if err := approve(ctx, store, leave("b").ID, false, io.Discard, none); err == nil {
		t.Error("approved without a terminal")
	}
	var b bytes.Buffer
	all, err := store.Requests()
	if err = errors.Join(err, printRequests(&b, false, 0, all)); err != nil || strings.ContainsAny(b.String(), "\x1b\u202e") || !strings.Contains(b.String(), r.ID) {
		t.Errorf("requests: %v: %q", err, b.String())
	}
}
