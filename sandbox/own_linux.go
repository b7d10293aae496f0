//go:build !race

package sandbox

// ownBinary is what a backend executes again.
func ownBinary() string { return "/proc/self/exe" }
