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
	if _, _, err := sweepAll(base, false); err != nil {
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
	_, _, err := o.sweep(false)
	return err
}

// sweep is clear, and says of how many servers that is, and how many bytes. With dryRun nothing is removed.
func (o *outputs) sweep(dryRun bool) (servers int, bytes int64, err error) {
	base := filepath.Join(o.state, "output")
	if _, err := os.Lstat(base); errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	}
	all, err := filelock.Wait(context.Background(), filepath.Join(base, "lock"), filelock.Alone)
	if err != nil {
		return 0, 0, err
	}
	defer all.Unlock()
	return sweepAll(base, dryRun)
}

// sweepAll sweeps each directory in base, whose lock is held.
func sweepAll(base string, dryRun bool) (servers int, bytes int64, err error) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if size, gone := sweepOne(filepath.Join(base, e.Name()), dryRun); gone {
			servers, bytes = servers+1, bytes+size
		}
	}
	return servers, bytes, nil
}

// sweepOne removes a directory whose server is gone. What can't be removed now can be the next time.
func sweepOne(dir string, dryRun bool) (bytes int64, gone bool) {
	lock, err := filelock.Try(filepath.Join(dir, "lock"), filelock.Alone)
	if err != nil {
		return 0, false
	}
	defer lock.Unlock()
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
	}
	if !dryRun {
		_ = os.RemoveAll(dir)
	}
	return bytes, true
}

func (o *outputs) close() error {
	if o.dir == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(o.dir), o.held.Unlock())
}
