package overlay

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fileLock is a lock that is held through an open file, between processes as well as within one.
// It is given back by the kernel when its holder dies.
type fileLock struct{ f *os.File }

// lockFile waits for the lock on the file at path, which it makes where it is missing. how is
// unix.LOCK_EX or unix.LOCK_SH. Someone may remove the file while holding the lock.
func lockFile(ctx context.Context, path string, how int) (*fileLock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := waitLock(ctx, f, how); err != nil {
			f.Close()
			return nil, err
		}
		held, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if named, err := os.Lstat(path); err == nil && os.SameFile(held, named) {
			return &fileLock{f}, nil
		}
		f.Close() // it was removed while we waited
	}
}

// waitLock polls, since a wait in the kernel could not be cancelled.
func waitLock(ctx context.Context, f *os.File, how int) error {
	for pause := 250 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := retryIntr(func() error { return unix.Flock(int(f.Fd()), how|unix.LOCK_NB) })
		if err != unix.EWOULDBLOCK {
			if err != nil {
				return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// retryIntr is retry where EAGAIN is an answer.
func retryIntr(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func (l *fileLock) unlock() error { return l.f.Close() }
