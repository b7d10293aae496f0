package main

import (
	"errors"
	"strings"
	"testing"

	"airlock/sandbox"
	"airlock/tools"
)

func TestCheckEgress(t *testing.T) {
	failed := &sandbox.SetupError{Op: "redirect the run's connections", Err: errors.New("no"), Hint: "load nf_tables"}
	const redirected = "connections and names are redirected (nf_tables)"
	both, four := sandbox.EgressForm{IPv6: true}, sandbox.EgressForm{}
	listeners := sandbox.EgressForm{Unredirected: errors.New("why"), IPv6: true}
	const byListeners = "names are redirected, and connections are taken by listeners, since nf_tables can't be had (why): programs that use no proxy reach the ports that network.allow names"
	const mend = "load the kernel modules nf_tables and nft_redir, or allow them in this container, and runs reach every port and can bind every port"
	for _, tt := range []struct {
		form           sandbox.EgressForm
		err            error
		mode, upstream string
		environ        []string
		want           check
	}{
		{both, nil, "deny", "", []string{"HTTPS_PROXY=http://p:1"}, check{OK: true, Detail: redirected}},
		{both, nil, "allow", "", nil, check{OK: true, Detail: redirected}},
		{both, nil, "allow", "", []string{"https_proxy=http://p:1"}, check{OK: true, Detail: redirected + "; https_proxy is set on this host, and not used: network.upstream would say so"}},
		{both, nil, "allow", "http://p:1", []string{"https_proxy=http://p:1"}, check{OK: true, Detail: redirected}},
		{both, nil, "allow", "name:http://p:1", nil, check{OK: true, Detail: redirected + "; network.upstream is given names, so that it alone knows what addresses are reached"}},
		{four, nil, "deny", "", nil, check{OK: true, Detail: redirected + "; connections that a run opens to IPv6 addresses are refused, since this kernel has no IPv6, or no NAT for it"}},
		{four, failed, "allow", "", nil, check{Detail: "sandbox: redirect the run's connections: no", Mend: "load nf_tables"}},
		{listeners, nil, "deny", "", nil, check{OK: true, Detail: byListeners, Mend: mend}},
		{listeners, nil, "allowlist", "", nil, check{OK: true, Mend: mend, Detail: byListeners +
			"; a run can't bind these on the wildcard address (0.0.0.0) once it has looked up such a host, only on 127.0.0.1: 53, 80, 443, 5432"}},
	} {
		var s settings
		s.Network.Mode, s.Network.Upstream, s.Network.Allow = tt.mode, tt.upstream, []string{"a.test", "b.test:5432"}
		tt.want.Name, tt.want.Promise = "network", "runs reach the hosts that network allows"
		if got := checkEgress(tt.form, tt.err, s, tt.environ); got != tt.want {
			t.Errorf("%v, %q, %q, %q: %+v, want %+v", tt.err, tt.mode, tt.upstream, tt.environ, got, tt.want)
		}
	}
}

// A mend of several lines, as AppArmor's profile, is printed so that it can be copied: every line, each as far in.
func TestDoctorPrintsAMendOfSeveralLines(t *testing.T) {
	d := diagnosis{
		Cause:  "user namespaces are not available",
		Mend:   "write this:\n\nprofile airlock \"/usr/bin/airlock\" {\n  userns,\n}\n\nand load it",
		Checks: []check{{Name: "user namespaces", Promise: "runs are isolated", Detail: "refused", Mend: "write this:\n\nprofile x {\n  userns,\n}\nand load it"}},
	}
	var b strings.Builder
	if err := d.print(&b, paint(false), 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"      mend: write this:\n            \n            profile x {\n              userns,\n            }\n            and load it\n",
		"\nmend: write this:\n\nprofile airlock \"/usr/bin/airlock\" {\n  userns,\n}\n\nand load it\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}

// Root is told what runs lack that belong to somebody else.
func TestDoctorOfRoot(t *testing.T) {
	for _, root := range []bool{true, false} {
		var b strings.Builder
		if err := (diagnosis{Possible: true, Backend: "native", Root: root}).print(&b, paint(false), 0); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "no cache that lasts"); got != root {
			t.Errorf("root %v: %s", root, &b)
		}
		if strings.Contains(b.String(), "refused") {
			t.Errorf("root %v: nothing is refused, but it says %s", root, &b)
		}
	}
	var b strings.Builder
	if err := (diagnosis{Possible: true, Backend: "native", Root: true, RootRefused: true}).print(&b, paint(false), 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "Runs in a workspace of root's own are refused, since nothing here holds limits.processes") {
		t.Errorf("runs of root's are refused, but it says %s", &b)
	}
}

// With limits.enforce = "strict" doctor refuses what a run would be refused for: processors, too, where they are limited.
func TestDoctorOfStrict(t *testing.T) {
	held := map[string]string{"memory": "cgroup v2", "processes": "cgroup v2", "cpu": sandbox.Affinity}
	limits := tools.DefaultLimits()
	if err := refusedByStrict(held, limits); err != nil {
		t.Errorf("without a limit on processors: %v", err)
	}
	limits.CPU = 1
	if err := refusedByStrict(held, limits); err == nil || !strings.Contains(err.Error(), "limits.cpu") {
		t.Errorf("with one: %v", err)
	}
	held["memory"] = sandbox.Watched
	if err := refusedByStrict(held, limits); err == nil || !strings.Contains(err.Error(), "limits.memory") {
		t.Errorf("with memory that is watched: %v", err)
	}
}

// Where runs of root's own are refused, and the workspace is root's, none is possible.
func TestDoctorInRootsWorkspace(t *testing.T) {
	dir := t.TempDir()
	if uid, _, err := runAs(dir); err != nil || uid != 0 {
		t.Skip("this is not root, or the temporary directory is not root's")
	}
	d := diagnosis{Possible: true, Root: true, RootRefused: true}
	d.enter(t.Context(), places{}, examined{opened: opened{dir: dir}}, nil)
	if d.Possible || !strings.Contains(d.Cause, "limits.processes") || d.Mend == "" {
		t.Errorf("%+v", d)
	}
}

// Where no sandbox can be built anyway, that is the cause, and a workspace is not tried on top of it.
func TestDoctorWithoutSandbox(t *testing.T) {
	d := diagnosis{Cause: "none"}
	d.enter(t.Context(), places{}, examined{opened: opened{dir: t.TempDir()}}, nil)
	if d.Possible || d.Cause != "none" || len(d.Checks) > 0 {
		t.Errorf("%+v", d)
	}
}
