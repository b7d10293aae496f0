//go:build unix

package envs

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fileLock is a lock that is held through an open file, between processes as well as within one. The
// kernel gives it back when its holder dies.
type fileLock struct{ f *os.File }

// errLocked is what [tryLock] returns where somebody else holds the lock.
var errLocked = errors.New("somebody else holds it")

// lock waits for the lock on the file at path, which it makes where it is missing. Whoever holds it alone
// may remove the file.
func lock(ctx context.Context, path string, shared bool) (*fileLock, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		l, err := tryLock(path, shared)
		if !errors.Is(err, errLocked) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// tryLock takes the lock, or returns errLocked.
func tryLock(path string, shared bool) (*fileLock, error) {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err != nil {
			f.Close()
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case errors.Is(err, unix.EWOULDBLOCK):
				return nil, errLocked
			}
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		held, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if named, err := os.Lstat(path); err == nil && os.SameFile(held, named) {
			return &fileLock{f}, nil
		}
		f.Close() // it was removed meanwhile
	}
}

func (l *fileLock) unlock() {
	if l != nil {
		l.f.Close()
	}
}
