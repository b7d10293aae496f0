//go:build linux && !amd64

package sandbox

import (
	"errors"
	"time"
)

// canTrace says that no process is ever stopped: how calls are made in its place is written, and tried, for amd64 alone.
const canTrace = false

type stopped struct{ patient bool }

func stopInRead(int, time.Time) (*stopped, error) { return nil, errors.ErrUnsupported }

func (*stopped) call(uintptr, ...uintptr) (uintptr, error) { return 0, errors.ErrUnsupported }

func (*stopped) release() error { return errors.ErrUnsupported }
