//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"runtime"
)

// Native needs Linux. Its methods exist elsewhere so that programs build; none can be called, since
// [NewNative] always fails.
type Native struct{}

// NewNative returns a *SetupError.
func NewNative() (*Native, error) { return nil, errNotLinux() }

func errNotLinux() *SetupError {
	return &SetupError{
		Op:   "use the native backend",
		Err:  errors.New("it needs Linux, and this is " + runtime.GOOS),
		Hint: "run airlock in a Linux virtual machine or container host",
	}
}

// Name implements [Backend].
func (*Native) Name() string { return "native" }

// Unconfined implements [Backend].
func (*Native) Unconfined() bool { return false }

// Probe implements [Backend].
func (*Native) Probe(context.Context) error { return errNotLinux() }

// ProbeEgress refuses as Probe does.
func (n *Native) ProbeEgress(ctx context.Context) (form EgressForm, err error) {
	return form, n.Probe(ctx)
}

func (n *Native) probeWithoutOverlay(ctx context.Context) error { return n.Probe(ctx) }

// Held implements [Backend].
func (*Native) Held() map[string]string {
	return map[string]string{"processes": "", "memory": "", "disk": "", "files": "", "cpu": ""}
}

// Start implements [Backend].
func (*Native) Start(context.Context, Spec, Stdio) (Process, error) { return nil, errNotLinux() }

// Close implements [Backend].
func (*Native) Close() error { return nil }
