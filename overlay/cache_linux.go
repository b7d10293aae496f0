package overlay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"airlock/internal/clearing"
	"airlock/internal/filelock"
)

// Cache is the directory that the runs of one workspace have as ~/.cache: what compilers and package managers keep
// there makes a second build warm. It is the lower layer of each run, and what the run writes there lands in it or is
// thrown away, as its changes of the workspace are. It is safe for concurrent use, by several servers too.
//
//	caches/ID/        ID is a digest of the workspace's real path
//	    workspace     that path, so that a cache whose workspace is gone can be told
//	    lock          shared by each run that has the cache, exclusive while something is removed to make room;
//	                  its time is that of the last use
//	    landing       held while something lands
//	    size          how many bytes files/ takes at most
//	    files/        the lower layer, with mode 0700
//	    layers/       as those of a workspace: SERVER/RUN/{upper,work,gone}, and waiting/RUN
type Cache struct {
	own     *tree // caches/ID
	files   *tree
	scratch *scratch
	limit   int64
}

// unusedFor is how long the cache of a workspace that is not there any more is kept: it may lie on a disk that
// is not always plugged in.
const unusedFor = 30 * 24 * time.Hour

// OpenCache opens the cache of the workspace at a real path, below the state directory, and makes it where it is
// missing. It belongs to uid and gid. limit is in bytes. What servers that are gone left of runs is removed, and so are
// the caches of workspaces that have been gone for a month. The error says why this place can't hold one.
func OpenCache(stateDir, workspace string, limit int64, uid, gid int) (*Cache, error) {
	all := filepath.Join(stateDir, "caches")
	c := &Cache{limit: limit}
	if err := c.open(filepath.Join(all, workspaceID(workspace)), workspace, uid, gid); err != nil {
		c.leave()
		return nil, fmt.Errorf("overlay: cache of runs: %w", err)
	}
	sweepCaches(all)
	return c, nil
}

func (c *Cache) open(dir, workspace string, uid, gid int) (err error) {
	files := filepath.Join(dir, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		return err
	}
	if uid != os.Geteuid() {
		for _, d := range []string{filepath.Dir(dir), dir} { // they must get through
			if err := os.Chmod(d, 0o711); err != nil {
				return err
			}
		}
		if err := os.Chown(files, uid, gid); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "workspace"), []byte(workspace), 0o600); err != nil {
		return err
	}
	if c.own, err = openTree(dir); err != nil {
		return err
	}
	if c.files, err = openTree(files); err != nil {
		return err
	}
	owner, err := statAt(c.files.fd, "")
	if err != nil {
		return err
	}
	s := &scratch{base: &tree{path: filepath.Join(dir, "layers")}}
	mode, foreign := scratchMode(owner)
	s.mode = mode
	if err := s.open(context.Background(), c.files, owner, foreign, holdsCache); err != nil {
		return err
	}
	c.scratch = s
	return nil
}

// holdsCache tries whether a directory can hold upper layers, and whether what is in them can be renamed into files.
func holdsCache(layers, files *tree) error {
	err := holdsLayers(layers, files)
	if err == nil {
		err = sameFilesystem(layers, files)
	}
	if err != nil {
		return fmt.Errorf("its filesystem can't hold what an overlay writes, as that of a container's own root can't (XDG_STATE_HOME leads to another): %w", err)
	}
	return nil
}

// Files is the real path of the cache's files, the lower layer of runs.
func (c *Cache) Files() string { return c.files.path }

// Free is how many bytes the cache's filesystem has left for its user.
func (c *Cache) Free() (int64, error) { return freeAt(c.files) }

// RemoveBeside is [Workspace.RemoveBeside] for the layers of the cache.
func (c *Cache) RemoveBeside() { c.scratch.removeBeside(upperName, workName) }

// Close removes what this server has made for its runs. They must have ended.
func (c *Cache) Close() error {
	err := c.scratch.close()
	return errors.Join(err, c.files.close(), c.own.close())
}

func (c *Cache) leave() {
	for _, t := range []*tree{c.own, c.files} {
		if t != nil {
			t.close()
		}
	}
}

// use waits until nothing is being removed from the cache, and keeps it so.
func (c *Cache) use(ctx context.Context) (*filelock.Lock, error) {
	return filelock.Wait(ctx, filepath.Join(c.own.path, "lock"), filelock.Shared)
}

// cachedFor returns the path of the workspace that the cache in dir is of, and whether it is gone. known is false if
// the cache does not say.
func cachedFor(dir string) (workspace string, gone, known bool) {
	path, err := os.ReadFile(filepath.Join(dir, "workspace"))
	if err != nil || !strings.HasPrefix(string(path), "/") {
		return "", false, false
	}
	_, err = os.Lstat(string(path))
	return string(path), errors.Is(err, os.ErrNotExist), true
}

// waitsFor reports whether the cache in dir has what runs left for it that wait for review, which is never dropped by itself.
func waitsFor(dir string) bool {
	waiting, err := os.ReadDir(filepath.Join(dir, "layers", waitingName))
	return len(waiting) > 0 || err != nil && !errors.Is(err, os.ErrNotExist)
}

// sweepCaches removes the caches of workspaces that are gone, but for those that a run has, and those that runs wait
// for. Nothing depends on its success.
func sweepCaches(dir string) {
	all, err := openTree(dir)
	if err != nil {
		return
	}
	defer all.close()
	names, err := all.list("")
	if err != nil {
		return
	}
	for _, name := range names {
		one := filepath.Join(dir, name)
		if _, gone, known := cachedFor(one); !known || !gone {
			continue
		}
		info, err := os.Stat(filepath.Join(one, "lock"))
		if err != nil || time.Since(info.ModTime()) < unusedFor {
			continue
		}
		lock, err := filelock.Try(filepath.Join(one, "lock"), filelock.Alone)
		if err == nil {
			if !waitsFor(one) {
				_ = clearing.Beneath(all.fd, name)
			}
			lock.Unlock()
		}
	}
}
