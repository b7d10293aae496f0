package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"airlock/internal/filelock"
)

// outputs is where one server keeps the output of runs that is too long for a result: a directory of its own
// in the state directory, made when it is needed and removed by close. What a server that was killed left
// behind is removed when the next one starts, and when one needs its own.
type outputs struct {
	state string // the state directory
	dir   string
	held  *filelock.Lock // its lock, held as long as the server lives
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
	all, err := filelock.Wait(context.Background(), filepath.Join(base, "lock"), filelock.Alone)
	if err != nil {
		return err
	}
	defer all.Unlock()
	if err := sweepAll(base); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(base, fmt.Sprintf("%d-", os.Getpid()))
	if err != nil {
		return err
	}
	held, err := filelock.Wait(context.Background(), filepath.Join(dir, "lock"), filelock.Alone)
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
	all, err := filelock.Wait(context.Background(), filepath.Join(base, "lock"), filelock.Alone)
	if err != nil {
		return err
	}
	defer all.Unlock()
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
	lock, err := filelock.Try(filepath.Join(dir, "lock"), filelock.Alone)
	if err != nil {
		return
	}
	defer lock.Unlock()
	_ = os.RemoveAll(dir)
}

func (o *outputs) close() error {
	if o.dir == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(o.dir), o.held.Unlock())
}
