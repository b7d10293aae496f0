//go:build !unix

package filelock

import (
	"context"
	"errors"
	"fmt"
)

var errUnsupported = fmt.Errorf("locks on files are not there on this system: %w", errors.ErrUnsupported)

// Lock is a lock that is held. There is none on this system.
type Lock struct{}

// Wait fails.
func Wait(ctx context.Context, path string, mode Mode) (*Lock, error) { return nil, errUnsupported }

// Try fails.
func Try(path string, mode Mode) (*Lock, error) { return nil, errUnsupported }

// WhileAlone fails.
func (l *Lock) WhileAlone(f func()) error { return errUnsupported }

// Touch fails.
func (l *Lock) Touch() error { return errUnsupported }

// Unlock does nothing.
func (l *Lock) Unlock() error { return nil }
