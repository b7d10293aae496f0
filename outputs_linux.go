package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// outputs is where one server keeps the output of runs that is too long for a result: a directory of its own
// in the state directory, made when it is needed and removed by close. What a server that was killed left
// behind is removed when the next one starts, and when one needs its own.
type outputs struct {
	state string // the state directory
	dir   string
	held  *os.File // its lock, held as long as the server lives
}

// file makes a file there.
func (o *outputs) file(name string) (*os.File, error) {
	if o.dir == "" {
		if err := o.make(); err != nil {
			return nil, fmt.Errorf("a place for the output of runs: %w", err)
		}
	}
	return os.OpenFile(filepath.Join(o.dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

func (o *outputs) make() error {
	base := filepath.Join(o.state, "output")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return err
	}
	all, err := locked(filepath.Join(base, "lock"), unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer all.Close()
	if err := sweepAll(base); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(base, fmt.Sprintf("%d-", os.Getpid()))
	if err != nil {
		return err
	}
	held, err := locked(filepath.Join(dir, "lock"), unix.LOCK_EX)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	o.dir, o.held = dir, held
	return nil
}

// clear removes what servers left behind that were killed.
func (o *outputs) clear() error {
	base := filepath.Join(o.state, "output")
	if _, err := os.Lstat(base); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	all, err := locked(filepath.Join(base, "lock"), unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer all.Close()
	return sweepAll(base)
}

// sweepAll sweeps each directory in base, whose lock is held.
func sweepAll(base string) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			sweep(filepath.Join(base, e.Name()))
		}
	}
	return nil
}

// sweep removes a directory whose server is gone. What can't be removed now can be the next time.
func sweep(dir string) {
	lock, err := locked(filepath.Join(dir, "lock"), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return
	}
	defer lock.Close()
	_ = os.RemoveAll(dir)
}

// locked opens a lock file and takes the lock, which the kernel gives back when the file is closed.
func locked(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err == nil {
			return f, nil
		}
		if err != unix.EINTR {
			f.Close()
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
	}
}

func (o *outputs) close() error {
	if o.dir == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(o.dir), o.held.Close())
}
