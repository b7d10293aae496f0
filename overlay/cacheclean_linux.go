package overlay

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"airlock/internal/clearing"
	"airlock/internal/filelock"
)

// CleanCaches empties the caches of runs of the workspaces that o names; its History and Scratch say nothing here. One of a
// workspace that is gone is removed, unless runs wait for review there. One that a run has stays as it is. The
// error is about what is not, or not wholly, empty now.
func CleanCaches(ctx context.Context, o CleanOptions) ([]CleanedCache, error) {
	dirs := []string{filepath.Join(o.StateDir, "caches", workspaceID(o.Workspace))}
	if o.Workspace == "" {
		var err error
		if dirs, err = filepath.Glob(filepath.Join(o.StateDir, "caches", "*")); err != nil {
			return nil, err
		}
	}
	var all []CleanedCache
	var failed []error
	for _, dir := range dirs {
		workspace, gone, known := cachedFor(dir)
		if !known {
			continue
		}
		one := CleanedCache{Workspace: workspace, Gone: gone}
		if err := one.clean(ctx, dir, o.DryRun); err != nil {
			failed = append(failed, err)
		} else if one.Bytes > 0 {
			all = append(all, one)
		}
	}
	return all, errors.Join(failed...)
}

func (one *CleanedCache) clean(ctx context.Context, dir string, dryRun bool) error {
	files, err := openTree(filepath.Join(dir, "files"))
	if err != nil {
		return err
	}
	defer files.close()
	names, err := files.list("")
	if err != nil || len(names) == 0 && !one.Gone {
		return err
	}
	lock, err := filelock.Try(filepath.Join(dir, "lock"), filelock.Alone)
	one.InUse = errors.Is(err, filelock.ErrHeld)
	if err != nil && !one.InUse {
		return err
	}
	if err == nil {
		defer lock.Unlock()
	}
	if one.Bytes, err = layerUsage(ctx, files, nil, map[string]uint32{}); err != nil || one.InUse || dryRun {
		return err
	}
	var failed []error
	for _, name := range names {
		failed = append(failed, clearing.Beneath(files.fd, name))
	}
	failed = append(failed, removeIfThere(filepath.Join(dir, "size"))) // it is measured anew
	if one.Gone && !waitsFor(dir) {
		parent, err := openTree(filepath.Dir(dir))
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		failed = append(failed, clearing.Beneath(parent.fd, filepath.Base(dir)), parent.close())
	}
	return errors.Join(failed...)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
