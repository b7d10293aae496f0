package sandbox_test

import (
	"testing"

	"airlock/sandbox"
	"airlock/sandbox/sandboxtest"
)

func init() {
	sandbox.SetRole("sandboxtest", func([]string) { sandboxtest.Main() })
}

// Every backend that confines its runs stands up to the same attacks.
func TestConformance(t *testing.T) {
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
			sandboxtest.Run(t, b, sandboxtest.Options{Lacks: sandbox.Lacks})
		})
	}
}
