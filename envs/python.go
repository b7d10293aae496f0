package envs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// python is the interpreter that environments are made for, as it describes itself.
type python struct {
	found Interpreter
	// Executable is the real path of the interpreter, of the base one where it is of a virtual environment.
	Executable string   `json:"executable"`
	Version    string   `json:"version"`
	ABI        string   `json:"abi"`
	Libraries  []string `json:"libraries"`
	// Pip is where pip is, or its wheel; "" where there is none that can be used. OldPip is the version of one that
	// is too old.
	Pip     string            `json:"pip"`
	OldPip  string            `json:"old_pip"`
	Markers map[string]string `json:"markers"`
}

// errNoPip names what a person has to install.
var errNoPip = errors.New("the interpreter has neither pip nor ensurepip, and nothing can be installed without; hint: install the package that brings one (Debian and Ubuntu: python3-pip; Fedora: python3-pip; Alpine: py3-pip), or set python.interpreter to a Python that has it")

// withPip reports why nothing can be installed by an interpreter; nil if it can.
func (p *python) withPip() error {
	switch {
	case p.Pip != "":
		return nil
	case p.OldPip != "":
		return fmt.Errorf("the interpreter has pip %s, and what resolves a whole set before it is installed is pip 22.3 or later; hint: set python.interpreter to a Python that has it, or upgrade pip there for all users", clip(p.OldPip, 40))
	}
	return errNoPip
}

// kind says what layers can be used with the interpreter.
func (p *python) kind() string {
	return strings.Join([]string{p.Markers["implementation_name"], p.Markers["python_version"], p.ABI, p.Markers["sys_platform"], p.Markers["platform_machine"]}, " ")
}

// site is the directory of the modules, relative to the environment.
func (p *python) site() string {
	name := "python"
	if p.Markers["implementation_name"] == "pypy" {
		name = "pypy"
	}
	return filepath.Join("lib", name+p.Markers["python_version"], "site-packages")
}

// step is one that the interpreter executes.
func (p *python) step(name string) Step {
	return Step{Name: name, Argv: []string{p.found.Path}, Show: p.found.Prefix}
}

// probe asks an interpreter what it is.
func (s *Store) probe(ctx context.Context, in Installer, found Interpreter) (*python, error) {
	w, err := s.newWork()
	if err != nil {
		return nil, err
	}
	defer w.close()
	p := &python{found: found}
	if _, err := s.drivePython(ctx, in, w, p.step("probe"), driverRequest{}, nil, p); err != nil {
		return nil, err
	}
	switch {
	case !filepath.IsAbs(p.Executable) || strings.ContainsAny(p.Executable, "\n\x00"):
		return nil, fmt.Errorf("the interpreter %s does not say where it is", found.Path)
	case !packageVersion(p.Version) || !packageVersion(p.Markers["python_version"]):
		return nil, fmt.Errorf("the interpreter %s does not say what version it is", found.Path)
	}
	return p, nil
}

func packageVersion(s string) bool {
	_, err := ParseVersion(s)
	return err == nil && !strings.ContainsAny(s, "/\\ ")
}
