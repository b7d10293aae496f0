package runcache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Clean empties the cache of a workspace, named by its real path, or with "" all of them; those of
// workspaces that are gone it removes. One that a run has stays as it is. The error is about what is not, or
// not wholly, empty now.
func Clean(ctx context.Context, state, workspace string, dryRun bool) ([]Cleaned, error) {
	all := filepath.Join(state, "caches")
	entries, err := os.ReadDir(all)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var cleaned []Cleaned
	var failed []error
	for _, e := range entries {
		c := &Cache{dir: filepath.Join(all, e.Name())}
		of, err := c.workspace()
		if err != nil || workspace != "" && of != workspace {
			continue
		}
		one, err := c.clean(ctx, of, dryRun)
		if err != nil {
			failed = append(failed, err)
		} else if one.Bytes > 0 {
			cleaned = append(cleaned, one)
		}
	}
	return cleaned, errors.Join(failed...)
}

func (c *Cache) clean(ctx context.Context, workspace string, dryRun bool) (Cleaned, error) {
	_, err := os.Lstat(workspace)
	one := Cleaned{Workspace: workspace, Gone: errors.Is(err, os.ErrNotExist)}
	entries, err := os.ReadDir(c.Files())
	if err != nil {
		return one, err
	}
	for _, dir := range []string{c.Files(), c.trash()} {
		bytes, err := usage(ctx, dir)
		if err != nil {
			return one, err
		}
		one.Bytes += bytes
	}
	if len(entries) == 0 && !one.Gone {
		one.Bytes = 0 // there is a directory and nothing in it
		return one, nil
	}
	lock, err := c.alone()
	if lock == nil {
		one.InUse = err == nil
		return one, err
	}
	defer lock.Close()
	if dryRun {
		return one, nil
	}
	if one.Gone {
		return one, removeAll(c.dir)
	}
	var failed []error
	for _, e := range entries {
		failed = append(failed, c.discard(e.Name()))
	}
	failed = append(failed, removeAll(c.trash()))
	_, err = c.measure(ctx)
	return one, errors.Join(append(failed, err)...)
}

// alone takes the lock unless somebody has it; then it returns nil.
func (c *Cache) alone() (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(c.dir, "lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return lock, nil
	}
	lock.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

// workspace is the path of the one that the cache is of.
func (c *Cache) workspace() (string, error) {
	path, err := os.ReadFile(filepath.Join(c.dir, "workspace"))
	if err == nil && !strings.HasPrefix(string(path), "/") {
		err = errors.New("not a path")
	}
	return string(path), err
}

// sweep removes the caches of workspaces that are gone. Nothing depends on its success.
func sweep(all string) {
	entries, err := os.ReadDir(all)
	if err != nil {
		return
	}
	for _, e := range entries {
		c := &Cache{dir: filepath.Join(all, e.Name())}
		workspace, err := c.workspace()
		if err != nil {
			continue
		}
		if _, err := os.Lstat(workspace); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		info, err := os.Stat(filepath.Join(c.dir, "lock"))
		if err != nil || time.Since(info.ModTime()) < unusedFor {
			continue
		}
		if lock, _ := c.alone(); lock != nil {
			_ = removeAll(c.dir)
			lock.Close()
		}
	}
}
