//go:build !unix

package envs

import (
	"context"
	"errors"
)

type fileLock struct{}

var (
	errLocked = errors.New("somebody else holds it")
	errNoLock = errors.New("environments need locks on files, which this system has none of")
)

func lock(context.Context, string, bool) (*fileLock, error) { return nil, errNoLock }

func tryLock(string, bool) (*fileLock, error) { return nil, errNoLock }

func (l *fileLock) unlock() {}
