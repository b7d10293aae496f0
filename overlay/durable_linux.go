package overlay

import "golang.org/x/sys/unix"

// With workspace.durable a landing survives loss of power at any moment, whole or not at all. What is
// needed for that is order, not only writing:
//
//  1. what is to come, content and names, before the journal that speaks of it;
//  2. the journal before the first step;
//  3. every step before the landing is called done;
//  4. that before the journal goes.

// sync writes the names in a directory to disk.
func (w *Workspace) sync(t *tree, path string) error {
	if !w.config.Durable {
		return nil
	}
	return t.sync(path, unix.O_DIRECTORY)
}

// sync writes what is at path to disk, which must be a directory or regular file.
func (t *tree) sync(path string, flags int) error {
	fd, err := t.open(path, unix.O_RDONLY|unix.O_NONBLOCK|flags)
	if is(err, unix.EACCES) {
		return t.fail("sync", path, unix.Syncfs(t.fd)) // not ours to open: all of the filesystem, then
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = retryIntr(func() error { return unix.Fsync(fd) })
	return t.fail("sync", path, err)
}

// syncTree writes what is at path, and everything below it, to disk.
func (w *Workspace) syncTree(t *tree, path string) error {
	if !w.config.Durable {
		return nil
	}
	i, err := t.stat(path)
	if err != nil {
		return err
	}
	switch i.kind {
	case regular:
		return t.sync(path, 0)
	case directory:
		names, err := t.list(path)
		if is(err, unix.EACCES) {
			return t.sync(path, unix.O_DIRECTORY)
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := w.syncTree(t, joinPath(path, name)); err != nil {
				return err
			}
		}
		return t.sync(path, unix.O_DIRECTORY)
	}
	return nil // links and the like are written with the directory that names them
}

// syncParents writes the directories of the workspace to disk that steps changed names in.
func (l *lander) syncParents(steps []step) error {
	if !l.w.config.Durable {
		return nil
	}
	done := map[string]bool{}
	for _, s := range steps {
		path := parentPath(s.path)
		if s.kind == applyMode {
			path = s.path
		}
		if done[path] {
			continue
		}
		done[path] = true
		if err := l.host.sync(path, unix.O_DIRECTORY); err != nil && !is(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) {
			return err
		}
	}
	return l.landing.sync("", unix.O_DIRECTORY)
}
