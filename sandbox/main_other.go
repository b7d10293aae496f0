//go:build !linux

package sandbox

// Main returns false: only Linux's native backend executes its own binary again.
func Main() (handled bool) { return false }
