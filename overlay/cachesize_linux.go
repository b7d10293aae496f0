package overlay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"airlock/internal/filelock"
)

// Why there was no room for what a run wrote.
var (
	errCacheSmall = errors.New("it is more than the cache may hold (sandbox.cache)")
	errCacheBusy  = errors.New("the cache is full (sandbox.cache), and nothing could be removed from it while other runs use it")
)

// makeRoom sees to it that the cache is within its limit with what a run adds. If it has to, it removes whole
// directories of the first level, the largest first, until no more than three quarters of the limit are taken: a
// program's cache of which single files are missing can be worse than none. For that nobody else may have the cache. The
// caller holds the lock of landings, and using.
func (c *Cache) makeRoom(added int64, gone *tree, using *filelock.Lock) error {
	if added > c.limit {
		return errCacheSmall
	}
	size, known := c.size()
	if !known || size+added > c.limit {
		size = c.measure()
	}
	if size+added > c.limit {
		// Who else would have it alone waits for the lock of landings.
		err := using.WhileAlone(func() { size = c.shrink(size, min(c.limit-added, c.limit/4*3), gone) })
		if err != nil {
			return err
		}
	}
	if size+added > c.limit {
		return errCacheBusy
	}
	// Before it is there: what a server that is killed leaves of it is counted then.
	return os.WriteFile(filepath.Join(c.own.path, "size"), strconv.AppendInt(nil, size+added, 10), 0o600)
}

// size is what the cache takes at most, by what landed since the last measure.
func (c *Cache) size() (bytes int64, known bool) {
	text, err := os.ReadFile(filepath.Join(c.own.path, "size"))
	if err != nil {
		return 0, false
	}
	bytes, err = strconv.ParseInt(string(text), 10, 64)
	return bytes, err == nil && bytes >= 0
}

// unmeasured is the size of what can't be measured: more than any limit, so that nothing can hide there.
const unmeasured = 1 << 60

// measure finds out what the cache takes.
func (c *Cache) measure() int64 {
	bytes, err := layerUsage(context.Background(), c.files, nil, map[string]uint32{})
	if err != nil {
		return unmeasured
	}
	return bytes
}

// shrink removes the largest entries until the cache takes no more than most bytes, and returns what it takes.
func (c *Cache) shrink(size, most int64, gone *tree) int64 {
	names, err := c.files.list("")
	if err != nil {
		return size
	}
	sizes := map[string]int64{}
	for _, name := range names {
		sizes[name] = c.sizeOf(name)
	}
	for n := 0; size > most && len(sizes) > 0; n++ {
		largest := ""
		for name, bytes := range sizes {
			if largest == "" || bytes > sizes[largest] {
				largest = name
			}
		}
		i, err := c.files.stat(largest)
		if err == nil {
			err = unlock(c.files, largest, i)
		}
		if err == nil {
			_ = move(c.files, largest, gone, "room-"+strconv.Itoa(n), unix.RENAME_NOREPLACE)
		}
		if sizes[largest] >= unmeasured {
			size = c.measure()
		} else {
			size -= sizes[largest]
		}
		delete(sizes, largest)
	}
	return size
}

// sizeOf is what one entry of the first level takes.
func (c *Cache) sizeOf(name string) int64 {
	i, err := c.files.stat(name)
	if err != nil || i.kind != directory {
		return int64(i.size)
	}
	dir, err := openUnlocked(c.files, name, i)
	if err != nil {
		return unmeasured
	}
	defer dir.close()
	bytes, err := layerUsage(context.Background(), dir, nil, map[string]uint32{})
	if err != nil {
		return unmeasured
	}
	return bytes
}
