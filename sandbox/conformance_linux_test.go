package sandbox_test

import (
	"os"
	"testing"

	"airlock/sandbox"
	"airlock/sandbox/sandboxtest"
)

func init() {
	sandbox.SetRole("sandboxtest", func([]string) { sandboxtest.Main() })
}

// Every backend that confines its runs stands up to the same attacks.
func TestConformance(t *testing.T) {
	conform(t, sandboxtest.Options{Lacks: sandbox.Lacks})
}

// So does one of root's that runs what somebody else owns, whoever that is.
func TestConformanceForAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives its runs another identity")
	}
	conform(t, sandboxtest.Options{Lacks: sandbox.Lacks, UID: 54321, GID: 54321})
}

func conform(t *testing.T, o sandboxtest.Options) {
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
			sandboxtest.Run(t, b, o)
		})
	}
}
