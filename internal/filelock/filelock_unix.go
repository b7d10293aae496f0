//go:build unix

package filelock

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is a lock that is held.
type Lock struct{ f *os.File }

// Wait takes the lock on the file at path, which it makes where it is missing. It polls, since a wait in the kernel could
// not be cancelled; the end of ctx ends it.
func Wait(ctx context.Context, path string, mode Mode) (*Lock, error) {
	for pause := 250 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		l, err := Try(path, mode)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// Try takes the lock, or returns [ErrHeld].
func Try(path string, mode Mode) (*Lock, error) {
	for {
		f, err := open(path)
		if err != nil {
			return nil, err
		}
		l := &Lock{f}
		err = l.set(mode)
		if err == nil {
			var held, named os.FileInfo
			if held, err = f.Stat(); err == nil {
				if named, err = os.Lstat(path); err == nil && os.SameFile(held, named) {
					return l, nil
				}
				err = nil // it was removed meanwhile
			}
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

// open is os.OpenFile without the five calls that find out that nobody waits for a regular file: each run takes some locks.
func open(path string) (*os.File, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case !errors.Is(err, unix.EINTR):
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// set takes the lock that a file is open for.
func (l *Lock) set(mode Mode) error {
	how := unix.LOCK_EX | unix.LOCK_NB
	if mode == Shared {
		how = unix.LOCK_SH | unix.LOCK_NB
	}
	for {
		switch err := unix.Flock(int(l.f.Fd()), how); err {
		case nil:
			return nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return ErrHeld
		default:
			return &os.PathError{Op: "lock", Path: l.f.Name(), Err: err}
		}
	}
}

// WhileAlone calls f if nobody else shares the lock, and keeps others from it meanwhile. Between that and sharing the lock, nobody
// has it, so that the error, which is about sharing it again, can be [ErrHeld]: only who else waits for it alone can bring that about.
func (l *Lock) WhileAlone(f func()) error {
	if l.set(Alone) == nil {
		f()
	}
	return l.set(Shared) // where the kernel could not give it alone, it took it
}

// Touch sets the time of the lock's file to now, which tells when it was last held.
func (l *Lock) Touch() error {
	now := time.Now()
	return os.Chtimes(l.f.Name(), now, now)
}

// Unlock gives the lock back. There may be none.
func (l *Lock) Unlock() error {
	if l == nil {
		return nil
	}
	return l.f.Close()
}
