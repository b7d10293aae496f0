package runcache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Cache is the cache of one workspace. It is safe for concurrent use, by several servers too.
type Cache struct {
	dir   string
	limit int64

	mu     sync.Mutex
	size   int64 // at the last measure
	known  bool
	next   time.Time // when it may be measured again
	behind sync.WaitGroup
}

// unusedFor is how long the cache of a workspace that is not there any more is kept: it may lie on a disk that
// is not always plugged in.
const unusedFor = 30 * 24 * time.Hour

// Open opens the cache of the workspace at a real path, below the state directory, and makes it where it is
// missing. It belongs to uid and gid. limit is in bytes. What is left of workspaces that have been gone for
// a month is removed.
func Open(state, workspace string, limit int64, uid, gid int) (*Cache, error) {
	all := filepath.Join(state, "caches")
	sum := sha256.Sum256([]byte(workspace))
	c := &Cache{dir: filepath.Join(all, hex.EncodeToString(sum[:8])), limit: limit}
	if err := os.MkdirAll(c.Files(), 0o700); err != nil {
		return nil, fmt.Errorf("cache of runs: %w", err)
	}
	if uid != os.Geteuid() {
		if err := c.giveTo(uid, gid); err != nil {
			return nil, fmt.Errorf("cache of runs: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(c.dir, "workspace"), []byte(workspace), 0o600); err != nil {
		return nil, fmt.Errorf("cache of runs: %w", err)
	}
	sweep(all)
	return c, nil
}

// giveTo lets another user than the server's have the files, and get to them.
func (c *Cache) giveTo(uid, gid int) error {
	for _, dir := range []string{filepath.Dir(c.dir), c.dir} {
		if err := os.Chmod(dir, 0o711); err != nil {
			return err
		}
	}
	for dir := c.dir; dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("the runs' user can't get through %s", dir)
		}
	}
	return os.Chown(c.Files(), uid, gid)
}

// Files is the directory that runs see.
func (c *Cache) Files() string { return filepath.Join(c.dir, "files") }

// Use says that a run has the cache until release is called. If the cache is too large and nobody else has it,
// it is made smaller first.
func (c *Cache) Use() (release func(), err error) {
	lock, err := os.OpenFile(filepath.Join(c.dir, "lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cache of runs: %w", err)
	}
	if c.tooLarge() && unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		c.shrink()
	}
	for { // also makes the exclusive lock a shared one
		if err = unix.Flock(int(lock.Fd()), unix.LOCK_SH); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("cache of runs: lock: %w", err)
	}
	now := time.Now()
	_ = os.Chtimes(lock.Name(), now, now) // when it was last used
	return func() { lock.Close() }, nil
}

// tooLarge goes by the last measure, whichever server made it.
func (c *Cache) tooLarge() bool {
	text, err := os.ReadFile(filepath.Join(c.dir, "size"))
	if err != nil {
		return false
	}
	size, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size, c.known = size, true
	return c.size > c.limit
}

// Measure finds out how large the cache is, in the background. It takes no more than a twentieth of the time,
// however often it is called.
func (c *Cache) Measure() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.next) {
		return
	}
	c.next = time.Now().Add(time.Hour) // until this one is done
	c.behind.Go(func() { _, _ = c.measure(context.Background()) })
}

// Free is how many bytes the cache's filesystem has left for its user.
func (c *Cache) Free() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(c.Files(), &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// Close waits for what goes on in the background.
func (c *Cache) Close() { c.behind.Wait() }

func (c *Cache) measure(ctx context.Context) (int64, error) {
	start := time.Now()
	bytes, err := usage(ctx, c.Files())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = time.Now().Add(19 * time.Since(start))
	if err == nil {
		c.size, c.known = bytes, true
		// A text that was cut off is one that says nothing, or less than there is until the next measure.
		_ = os.WriteFile(filepath.Join(c.dir, "size"), strconv.AppendInt(nil, bytes, 10), 0o600)
	}
	return bytes, err
}

// Grown measures the cache until ctx ends, and tells by how many bytes it has grown since the call, whoever
// wrote them. It takes no more than a twentieth of the time.
func (c *Cache) Grown(ctx context.Context, tell func(bytes int64)) {
	c.mu.Lock()
	first, known := c.size, c.known
	c.mu.Unlock()
	pause := 250 * time.Millisecond
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		start := time.Now()
		now, err := c.measure(ctx)
		if err == nil && !known {
			first, known = now, true
		}
		if err == nil {
			tell(max(0, now-first))
		}
		pause = max(time.Second, 19*time.Since(start))
	}
}

// shrink removes whole directories until three quarters of the limit are left. The caller holds the lock.
func (c *Cache) shrink() {
	total, err := c.measure(context.Background())
	if err != nil {
		return
	}
	entries, err := os.ReadDir(c.Files())
	if err != nil {
		return
	}
	sizes := make([]int64, len(entries))
	for i, e := range entries {
		sizes[i], _ = usage(context.Background(), filepath.Join(c.Files(), e.Name()))
	}
	for total > c.limit/4*3 {
		largest := -1
		for i, size := range sizes {
			if size > 0 && (largest < 0 || size > sizes[largest]) {
				largest = i
			}
		}
		if largest < 0 {
			break
		}
		if c.discard(entries[largest].Name()) == nil {
			total -= sizes[largest]
		}
		sizes[largest] = 0
	}
	_ = removeAll(c.trash())
	_, _ = c.measure(context.Background())
}

func (c *Cache) trash() string { return filepath.Join(c.dir, "trash") }

// discard puts what has a name at the first level out of sight of runs, at once.
func (c *Cache) discard(name string) error {
	if err := os.MkdirAll(c.trash(), 0o700); err != nil {
		return err
	}
	name = filepath.Join(c.Files(), name)
	makeWritable(unix.AT_FDCWD, name) // a directory must be writable to get another parent
	return os.Rename(name, filepath.Join(c.trash(), strconv.FormatInt(time.Now().UnixNano(), 10)))
}
