package overlay

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"airlock/internal/filelock"
)

// CacheTxn is what one run has of the cache. It ends with one call of Land, Park or Discard, whatever that returns.
// No process may write to the layer any more then, and it must not be mounted.
type CacheTxn struct {
	c     *Cache
	run   string
	using *filelock.Lock // nil once it has ended
	dir   *tree          // layers/SERVER/RUN
	upper *tree
	modes map[string]uint32 // of directories of the layer that had to be made readable
}

// Begin makes the layer of a run, whose name is that of its transaction. The end of ctx ends the wait for one that
// makes room.
func (c *Cache) Begin(ctx context.Context, run string) (_ *CacheTxn, err error) {
	t := &CacheTxn{c: c, run: run, modes: map[string]uint32{}}
	defer func() {
		if err != nil {
			err = fmt.Errorf("overlay: cache of runs: begin: %w", errors.Join(err, t.end()))
		}
	}()
	if t.using, err = c.use(ctx); err != nil {
		return nil, err
	}
	_ = t.using.Touch()
	root, err := statAt(c.files.fd, "")
	if err != nil {
		return nil, err
	}
	if t.dir, err = c.scratch.begin(run, true); err != nil {
		return nil, err
	}
	if t.upper, err = newUpper(t.dir, root, root); err != nil {
		return nil, err
	}
	return t, nil
}

// Layer returns the paths to mount, at whatever place the run sees its cache.
func (t *CacheTxn) Layer() Layer {
	return Layer{Lower: t.c.files.path, Upper: t.upper.path, Work: filepath.Join(t.dir.path, "work")}
}

// Usage is how many bytes the layer takes, for a run that goes on: it leaves out what it can't read.
func (t *CacheTxn) Usage(ctx context.Context) (int64, error) {
	return layerUsage(ctx, t.upper, nil, nil)
}

// FinalUsage is Usage for a layer that nothing writes to any more: it leaves nothing out.
func (t *CacheTxn) FinalUsage(ctx context.Context) (int64, error) {
	return layerUsage(ctx, t.upper, nil, t.modes)
}

// Land brings what the run wrote into the cache. Where others have landed since it began, the last writer of a file
// wins. What arrives arrives by a rename: a file, or a directory that the cache does not have, with all that is in it. So a
// server that is killed meanwhile leaves some of it, and nothing by halves. After an error some of it can be missing, too, or,
// where there is no room, all.
func (t *CacheTxn) Land(ctx context.Context) error {
	return errors.Join(t.land(ctx), t.end())
}

func (t *CacheTxn) land(ctx context.Context) error {
	added, err := t.FinalUsage(ctx) // makes it readable, too
	if err != nil {
		return err
	}
	names, err := t.upper.list("")
	if err != nil || len(names) == 0 {
		return err
	}
	lock, err := filelock.Wait(ctx, filepath.Join(t.c.own.path, "landing"), filelock.Alone)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	gone, err := t.dir.mkdir("gone", 0o700)
	if err != nil {
		return err
	}
	defer gone.close()
	if err := t.c.makeRoom(added, gone, t.using); err != nil {
		return err
	}
	l := &cacheLander{given: given{in: t.dir}, gone: gone, modes: t.modes}
	return l.merge(t.upper, t.c.files, "", 0)
}

// Park keeps the layer, as long as the run waits for review.
func (t *CacheTxn) Park() error {
	err := t.park()
	return errors.Join(err, t.end())
}

func (t *CacheTxn) park() error {
	names, err := t.upper.list("")
	if err != nil || len(names) == 0 {
		return err
	}
	base := t.c.scratch.base
	if err := unix.Mkdirat(base.fd, waitingName, 0o700); err != nil && err != unix.EEXIST {
		return base.fail("mkdir", waitingName, err)
	}
	return move(t.c.scratch.server, t.run, base, joinPath(waitingName, t.run), unix.RENAME_NOREPLACE)
}

// Discard throws away what the run wrote.
func (t *CacheTxn) Discard() error { return t.end() }

// end lets go of everything, and removes the layer, unless it waits.
func (t *CacheTxn) end() error {
	var err error
	for _, dir := range []*tree{t.upper, t.dir} {
		if dir != nil {
			dir.close()
		}
	}
	if t.dir != nil {
		err = t.c.scratch.remove(t.run)
	}
	t.using.Unlock()
	t.upper, t.dir, t.using = nil, nil, nil
	return err
}

// LandWaiting brings what a run wrote whose changes of the workspace have waited for review, and have landed now, into
// the cache. It may have written nothing there.
func (c *Cache) LandWaiting(ctx context.Context, run string) error {
	return c.endWaiting(ctx, run, func(t *CacheTxn) error { return t.land(ctx) })
}

// DiscardWaiting throws it away.
func (c *Cache) DiscardWaiting(ctx context.Context, run string) error {
	return c.endWaiting(ctx, run, func(*CacheTxn) error { return nil })
}

func (c *Cache) endWaiting(ctx context.Context, run string, end func(*CacheTxn) error) (err error) {
	if !isRunID(run) {
		return fmt.Errorf("overlay: %q is not the id of a run", run)
	}
	t := &CacheTxn{c: c, run: run, modes: map[string]uint32{}}
	// From here on it is a run of this server, which nobody else ends.
	err = move(c.scratch.base, joinPath(waitingName, run), c.scratch.server, run, unix.RENAME_NOREPLACE)
	if is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.end()) }()
	if t.dir, err = c.scratch.server.sub(run); err != nil {
		return err
	}
	if t.upper, err = t.dir.sub("upper"); err != nil {
		return err
	}
	if t.using, err = c.use(ctx); err != nil {
		return err
	}
	return end(t)
}

// KeepWaiting throws away what is left to wait of runs that wait for review no more. waiting, which is asked only if
// there is anything, names those that do.
func (c *Cache) KeepWaiting(ctx context.Context, waiting func() ([]string, error)) error {
	names, err := c.scratch.base.list(waitingName)
	if is(err, unix.ENOENT) || err == nil && len(names) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	runs, err := waiting()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains(runs, name) && isRunID(name) {
			err = errors.Join(err, c.DiscardWaiting(ctx, name))
		}
	}
	return err
}
