package envs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPackagesValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Packages)
		want   []string
	}{
		{"defaults", func(*Packages) {}, nil},
		{"full", func(p *Packages) {
			p.Approve = "never"
			p.Allow = []string{"six", "numpy>=1.26", "a.b-c_d[x, y]>=1,<2", `six; python_version > "2"`, "x ~=1.0"}
			p.Index, p.R.Repo = "https://index.example/simple", "http://r.example"
			p.Hosts = []string{"files.example", "files.example:8443"}
			p.Cert = "/etc/ssl/index.pem"
		}, nil},
		{"approve", func(p *Packages) { p.Approve = "always" }, []string{`packages.approve: "always" is not one of ask, allowlist, never`}},
		{"requirements", func(p *Packages) {
			p.Allow = []string{"-r", "x @ file:///etc", "six\n", "a===1", "./x", " six"}
			p.Deny = []string{""}
		}, []string{
			`packages.allow: "-r": not a requirement: a package name, with versions if any, as in "six" or "numpy>=1.26"`,
			`packages.allow: "x @ file:///etc": not a requirement: a package name, with versions if any, as in "six" or "numpy>=1.26"`,
			`packages.allow: "six\n": not a requirement: a package name, with versions if any, as in "six" or "numpy>=1.26"`,
			`packages.allow: "a===1": not a requirement: a package name, with versions if any, as in "six" or "numpy>=1.26"`,
			`packages.allow: "./x": not a requirement: a package name, with versions if any, as in "six" or "numpy>=1.26"`,
			`packages.allow: " six": not a requirement: a package name, with versions if any, as in "six" or "numpy>=1.26"`,
			`packages.deny: "": not a requirement: a package name, with versions if any, as in "six" or "numpy>=1.26"`,
		}},
		{"places", func(p *Packages) {
			p.Index, p.R.Repo, p.Cert, p.Hosts = "ftp://user:secret@x", "x", "cert.pem", []string{"https://x"}
		}, []string{
			`packages.hosts: "https://x": not a host name`,
			`packages.index: not an address that begins with https:// or http://`,
			`packages.cert: "cert.pem": not an absolute path; write it from "/" on, or from "~/", which is your home directory`,
			`packages.r.repo: not an address that begins with https:// or http://`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := DefaultPackages()
			tt.change(&p)
			if diff := cmp.Diff(tt.want, faults(p.Validate())); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPythonValidate(t *testing.T) {
	p := Python{Interpreter: "python3", Deps: []string{"/ok", "/a/../b"}, Base: []string{"six", "-e ."}}
	want := []string{
		`python.interpreter: "python3": not an absolute path; write it from "/" on, or from "~/", which is your home directory`,
		`python.deps: "/a/../b": not a clean path; write "/b"`,
		`python.base: "-e .": not a requirement: a package name, with versions if any, as in "six" or "numpy>=1.26"`,
	}
	if diff := cmp.Diff(want, faults(p.Validate())); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if err := DefaultPython().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func faults(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}
