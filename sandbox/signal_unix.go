//go:build unix

package sandbox

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalName gives "SIGSEGV", and a number for real-time signals, which have no names.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}
