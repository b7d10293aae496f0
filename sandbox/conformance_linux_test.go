package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"airlock/sandbox"
	"airlock/sandbox/sandboxtest"
)

func init() {
	sandbox.SetRole("sandboxtest", func([]string) { sandboxtest.Main() })
}

// Every backend that confines its runs stands up to the same attacks.
func TestConformance(t *testing.T) {
	conform(t, sandboxtest.Options{Lacks: sandbox.Lacks}, itself)
}

// So does one of root's that runs what somebody else owns, whoever that is.
func TestConformanceForAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives its runs another identity")
	}
	conform(t, sandboxtest.Options{Lacks: sandbox.Lacks, UID: 54321, GID: 54321}, itself)
}

func itself(_ *testing.T, b sandbox.Backend) sandbox.Backend { return b }

func conform(t *testing.T, o sandboxtest.Options, as func(*testing.T, sandbox.Backend) sandbox.Backend) {
	t.Helper()
	for _, backend := range []struct {
		name string
		make func() (sandbox.Backend, error)
	}{
		{"native", func() (sandbox.Backend, error) { return sandbox.NewNative() }},
		{"bwrap", func() (sandbox.Backend, error) { return sandbox.NewBubblewrap() }},
	} {
		t.Run(backend.name, func(t *testing.T) {
			b, err := backend.make()
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			sandboxtest.Run(t, as(t, b), o)
		})
	}
}

// So does a shell that was started ahead, with what it executes. None is taken when the host's mounts have changed meanwhile, as tests of
// other packages change them; then it is tried again.
func TestConformanceOfAShellAhead(t *testing.T) {
	sandbox.NeedsShellAhead(t)
	for range 20 {
		disturbed := false
		conform(t, sandboxtest.Options{Lacks: sandbox.Lacks}, func(t *testing.T, b sandbox.Backend) sandbox.Backend {
			return shellAhead{b, t, &disturbed}
		})
		if !disturbed {
			return
		}
	}
	t.Error("no shell that was started ahead was ever taken")
}

// shellAhead has each run begin as a shell that was started ahead.
type shellAhead struct {
	sandbox.Backend
	t         *testing.T
	disturbed *bool
}

// otherShell is the exit status of a shell that was not started ahead.
const otherShell = 99

func (b shellAhead) Start(ctx context.Context, spec sandbox.Spec, stdio sandbox.Stdio) (sandbox.Process, error) {
	command := fmt.Sprintf("%s || exit %d; exec", sandbox.StartedAhead, otherShell)
	for _, argument := range spec.Argv {
		command += " " + sandbox.ShellQuoted(argument)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		return nil, err
	}
	spec.Argv = []string{bash, "-c", command}
	b.Backend.(interface{ Prepare(sandbox.Spec) }).Prepare(spec)
	p, err := b.Backend.Start(ctx, spec, stdio)
	return shellAheadProcess{p, b}, err
}

type shellAheadProcess struct {
	sandbox.Process
	of shellAhead
}

func (p shellAheadProcess) Wait() (sandbox.Exit, error) {
	exit, err := p.Process.Wait()
	if err == nil && exit.Code == otherShell {
		*p.of.disturbed = true
		p.of.t.Skip("the host's mounts have changed")
	}
	return exit, err
}
