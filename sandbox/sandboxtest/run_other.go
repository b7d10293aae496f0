//go:build !linux

package sandboxtest

import (
	"testing"

	"airlock/sandbox"
)

// Main returns: only on Linux are there attempts to be made.
func Main() {}

// Run fails: its attempts are Linux's system calls, and no backend confines runs on this system.
func Run(t *testing.T, _ sandbox.Backend, _ Options) {
	t.Helper()
	t.Fatal("sandboxtest: there is no conformance suite for this system")
}
