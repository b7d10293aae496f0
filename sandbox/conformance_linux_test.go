package sandbox_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
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

func itself(b sandbox.Backend) sandbox.Backend { return b }

func conform(t *testing.T, o sandboxtest.Options, as func(sandbox.Backend) sandbox.Backend) {
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
			sandboxtest.Run(t, as(b), o)
		})
	}
}

// So does a shell that was started ahead, with what it executes.
func TestConformanceOfAShellAhead(t *testing.T) {
	sandbox.NeedsShellAhead(t)
	conform(t, sandboxtest.Options{Lacks: sandbox.Lacks}, func(b sandbox.Backend) sandbox.Backend { return shellAhead{b} })
}

// shellAhead has each run begin as a shell that was started ahead.
type shellAhead struct{ sandbox.Backend }

func (b shellAhead) Start(ctx context.Context, spec sandbox.Spec, stdio sandbox.Stdio) (sandbox.Process, error) {
	command := sandbox.StartedAhead + " || exit 99; exec"
	for _, argument := range spec.Argv {
		command += " '" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		return nil, err
	}
	spec.Argv = []string{bash, "-c", command}
	b.Backend.(interface{ Prepare(sandbox.Spec) }).Prepare(spec)
	return b.Backend.Start(ctx, spec, stdio)
}
