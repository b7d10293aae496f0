//go:build !linux

package sandbox

import "context"

// Checks reports the one thing that is missing.
func Checks(context.Context) []Check {
	err := errNotLinux()
	return []Check{{
		Name:    "operating system",
		Promise: "a run is isolated",
		Detail:  err.Err.Error(),
		Mend:    err.Hint,
	}}
}
