package envs

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"airlock/internal/pattern"
)

// Packages is the [packages] section of the configuration. Begin with [DefaultPackages]: Approve has
// no zero value that is valid.
type Packages struct {
	// Approve is "ask", "allowlist" or "never".
	Approve string `toml:"approve"`
	// Allow and Deny hold requirement specifiers; those of Allow need no question, Deny wins.
	Allow []string `toml:"allow"`
	Deny  []string `toml:"deny"`
	// Index is the address of the package index.
	Index string `toml:"index"`
	// Hosts are further hosts that an installer may reach.
	Hosts []string `toml:"hosts"`
	// Cert is the path of a PEM bundle for a private index.
	Cert string `toml:"cert"`
	// R is the [packages.r] section.
	R RPackages `toml:"r"`
}

// RPackages is the [packages.r] section of the configuration.
type RPackages struct {
	// Repo is the address of the repository of R packages.
	Repo string `toml:"repo"`
	// Allow and Deny are for R packages what those of [Packages] are for Python's: "jsonlite>=1.8".
	Allow []string `toml:"allow"`
	Deny  []string `toml:"deny"`
}

// Python is the [python] section of the configuration. Its zero value is the default.
type Python struct {
	// Interpreter is the absolute path of the interpreter; "" finds one that a run can see.
	Interpreter string `toml:"interpreter"`
	// Deps are existing site directories, absolute, mounted read-only and put on the path.
	Deps []string `toml:"deps"`
	// Base are the requirements of the read-only base layer.
	Base []string `toml:"base"`
}

// ApproveModes lists the values of Packages.Approve, the strictest last.
var ApproveModes = [...]string{"ask", "allowlist", "never"}

// DefaultPackages returns the section as it is without any configuration.
func DefaultPackages() Packages {
	return Packages{
		Approve: "ask",
		Allow:   []string{},
		Deny:    []string{},
		Index:   "https://pypi.org/simple",
		Hosts:   []string{"files.pythonhosted.org"},
		R:       RPackages{Repo: "https://cran.r-project.org", Allow: []string{}, Deny: []string{}},
	}
}

// DefaultPython returns the section as it is without any configuration.
func DefaultPython() Python {
	return Python{Deps: []string{}, Base: []string{}}
}

// Validate reports everything that is wrong with the section, each fault as "packages.key: …", joined.
func (p Packages) Validate() error {
	var errs []error
	if !slices.Contains(ApproveModes[:], p.Approve) {
		errs = append(errs, fmt.Errorf("packages.approve: %q is not one of %s", p.Approve, strings.Join(ApproveModes[:], ", ")))
	}
	errs = append(errs, checkEach("packages.allow", p.Allow, checkRequirement)...)
	errs = append(errs, checkEach("packages.deny", p.Deny, checkRequirement)...)
	errs = append(errs, checkEach("packages.hosts", p.Hosts, checkHost)...)
	if err := checkAddress(p.Index); err != nil {
		errs = append(errs, fmt.Errorf("packages.index: %w", err))
	}
	if err := checkAbs(p.Cert); p.Cert != "" && err != nil {
		errs = append(errs, fmt.Errorf("packages.cert: %q: %w", p.Cert, err))
	}
	errs = append(errs, checkEach("packages.r.allow", p.R.Allow, checkRRequirement)...)
	errs = append(errs, checkEach("packages.r.deny", p.R.Deny, checkRRequirement)...)
	if err := checkAddress(p.R.Repo); err != nil {
		errs = append(errs, fmt.Errorf("packages.r.repo: %w", err))
	}
	return errors.Join(errs...)
}

// Validate reports everything that is wrong with the section, each fault as "python.key: …", joined.
func (p Python) Validate() error {
	var errs []error
	if err := checkAbs(p.Interpreter); p.Interpreter != "" && err != nil {
		errs = append(errs, fmt.Errorf("python.interpreter: %q: %w", p.Interpreter, err))
	}
	errs = append(errs, checkEach("python.deps", p.Deps, checkAbs)...)
	errs = append(errs, checkEach("python.base", p.Base, checkRequirement)...)
	return errors.Join(errs...)
}

func checkEach(key string, entries []string, check func(string) error) []error {
	var errs []error
	for _, entry := range entries {
		if err := check(entry); err != nil {
			errs = append(errs, fmt.Errorf("%s: %q: %w", key, entry, err))
		}
	}
	return errs
}

// requirement is a name with extras, version specifiers and a marker, as PEP 508 has them. What makes
// an installer read something else than its index (options, paths, addresses, "===") does not match.
var requirement = pattern.Lazy(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?` + // name
	`( ?\[[A-Za-z0-9._, -]*\])?` + // extras
	`( ?(~=|==|!=|<=|>=|<|>) ?[A-Za-z0-9.*+!_-]+(, ?(~=|==|!=|<=|>=|<|>) ?[A-Za-z0-9.*+!_-]+)*)?` + // versions
	`( ?; ?[A-Za-z0-9_.'"<>=!~ ()-]+)?$`) // marker

func checkRequirement(s string) error { return CheckRequirement(LanguagePython, s) }

func checkRRequirement(s string) error { return CheckRequirement(LanguageR, s) }

var hostName = pattern.Lazy(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*(:[1-9][0-9]{0,4})?$`)

func checkHost(s string) error {
	if len(s) > 253 || !hostName().MatchString(s) {
		return errors.New("not a host name")
	}
	return nil
}

// checkAddress does not repeat the address: it may hold a password.
func checkAddress(s string) error {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("not an address that begins with https:// or http://")
	}
	return nil
}

func checkAbs(s string) error {
	switch {
	case strings.ContainsRune(s, 0):
		return errors.New("not a path")
	case !filepath.IsAbs(s):
		return errors.New(`not an absolute path; write it from "/" on, or from "~/", which is your home directory`)
	case filepath.Clean(s) != s:
		return fmt.Errorf("not a clean path; write %q", filepath.Clean(s))
	}
	return nil
}

// Destinations are what an installer has to reach: the index, the repository of R packages, and Hosts. Each is "host:port", or a host alone
// for the usual ports.
func (p Packages) Destinations() []string {
	var all []string
	for _, address := range []string{p.Index, p.R.Repo} {
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" {
			continue
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		all = append(all, net.JoinHostPort(u.Hostname(), port))
	}
	return append(all, p.Hosts...)
}
