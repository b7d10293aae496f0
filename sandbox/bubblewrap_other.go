//go:build !linux

package sandbox

// Bubblewrap needs Linux, as [Native] does.
type Bubblewrap struct{ Native }

// NewBubblewrap returns a *SetupError.
func NewBubblewrap() (*Bubblewrap, error) { return nil, errNotLinux() }
