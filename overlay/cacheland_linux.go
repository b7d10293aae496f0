package overlay

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// cacheLander brings the layer of a run into the cache: entry by entry, in the order of their names, each by one rename.
//
// A program that keeps a cache takes what is missing for not cached, and what is there for whole. So a directory that the
// cache does not have, such as a module that was unpacked, comes with all that is in it, and only where both have a
// directory its entries are looked at one by one. Names are resolved below open directories, without following a link.
type cacheLander struct {
	given given
	gone  *tree // takes what is removed
	moved int   // into gone
	modes map[string]uint32
}

// maxCacheDepth is how many directories deep what lands may lie; each level of a walk holds two open.
const maxCacheDepth = 200

var errCacheDepth = errors.New("directories lie too deep in one another for the cache")

// merge lands what a directory of the layer holds, at path, in that of the cache.
func (l *cacheLander) merge(upper, lower *tree, path string, depth int) error {
	if depth > maxCacheDepth {
		return errCacheDepth
	}
	names, err := upper.list("")
	for _, name := range names {
		// What can't land is missing, which is no reason for the rest to be.
		if e := l.entry(upper, lower, name, joinPath(path, name), depth+1); err == nil {
			err = e
		}
	}
	return err
}

func (l *cacheLander) entry(upper, lower *tree, name, path string, depth int) error {
	run, err := upper.stat(name)
	if err != nil {
		return err
	}
	has, err := lower.stat(name)
	switch {
	case err != nil:
		return err
	case run.whiteout:
		return l.remove(lower, name, has)
	case run.kind == special:
		return nil // of use to nobody once its run is over
	}
	m, redirect, err := readMarks(upper.fd, name)
	switch {
	case err != nil:
		return err
	case redirect:
		return redirectError(path)
	case run.kind == directory && !m.opaque && has.kind == directory:
		return l.both(upper, lower, name, path, run, has, depth)
	case run.kind == directory && !m.opaque && m.copied:
		return nil // a part of what someone else has removed since: no whole could come of it
	}
	if err := l.clean(upper, name, path, run, m, depth); err != nil {
		return err
	}
	return l.put(upper, lower, name, path, run, has)
}

// both lands a directory that the cache has, too.
func (l *cacheLander) both(upper, lower *tree, name, path string, run, has inode, depth int) error {
	if err := unlock(lower, name, has); err != nil {
		return err
	}
	from, err := openUnlocked(upper, name, run)
	if err != nil {
		return err
	}
	defer from.close()
	to, err := lower.sub(name)
	if err != nil {
		return err
	}
	defer to.close()
	err = l.merge(from, to, path, depth)
	return errors.Join(err, to.fail("chmod", "", unix.Fchmod(to.fd, l.mode(path, run))))
}

// clean takes off an entry, and what it holds, what a lower layer must not have: overlayfs's marks and whiteouts, which a
// later mount would obey, attributes of security modules, set-ID bits, and special files.
func (l *cacheLander) clean(in *tree, name, path string, run inode, m marks, depth int) error {
	if err := l.given.leave(&m); err != nil {
		return err
	}
	if run.kind == symlink { // whose mode can't be set
		return in.scrub(scrub{path: name, strip: m.strip})
	}
	if run.kind == directory {
		if err := l.cleanDir(in, name, path, run, depth); err != nil {
			return err
		}
		run.mode |= 0o700
	}
	return in.scrub(scrub{path: name, now: run.mode, mode: run.landedMode(), strip: m.strip})
}

func (l *cacheLander) cleanDir(in *tree, name, path string, run inode, depth int) error {
	if depth > maxCacheDepth {
		return errCacheDepth
	}
	dir, err := openUnlocked(in, name, run)
	if err != nil {
		return err
	}
	defer dir.close()
	names, err := dir.list("")
	if err != nil {
		return err
	}
	for _, child := range names {
		i, err := dir.stat(child)
		if err != nil {
			return err
		}
		if i.kind == special {
			if err := unix.Unlinkat(dir.fd, child, 0); err != nil {
				return dir.fail("remove", child, err)
			}
			continue
		}
		m, _, err := readMarks(dir.fd, child)
		if err != nil {
			return err
		}
		below := joinPath(path, child)
		if err := l.clean(dir, child, below, i, m, depth+1); err != nil {
			return err
		}
		if err := l.lock(dir, child, below, i); err != nil {
			return err
		}
	}
	return nil
}

// put brings in what has been cleaned. What it replaces is in the layer afterwards, and goes with that.
func (l *cacheLander) put(upper, lower *tree, name, path string, run, has inode) error {
	flags := uint(unix.RENAME_NOREPLACE)
	if has.kind != absent {
		flags = unix.RENAME_EXCHANGE
		if err := unlock(lower, name, has); err != nil {
			return err
		}
	}
	if err := move(upper, name, lower, name, flags); err != nil {
		return err
	}
	return l.lock(lower, name, path, run)
}

// remove takes an entry out of the cache, whole.
func (l *cacheLander) remove(lower *tree, name string, has inode) error {
	if has.kind == absent {
		return nil
	}
	if err := unlock(lower, name, has); err != nil {
		return err
	}
	l.moved++
	return move(lower, name, l.gone, strconv.Itoa(l.moved), unix.RENAME_NOREPLACE)
}

// mode is what a directory of the layer had when its run was over.
func (l *cacheLander) mode(path string, run inode) uint32 {
	if mode, opened := l.modes[path]; opened {
		return mode
	}
	return run.mode
}

// unlock lets the owner of a directory into it. It must be writable, too, to get another parent, since its ".." is in
// it, and Go's module cache is full of such that are not.
func unlock(in *tree, name string, i inode) error {
	if i.kind != directory || i.mode&0o700 == 0o700 {
		return nil
	}
	return in.chmod(name, i.mode|0o700)
}

// openUnlocked opens a directory that is unlocked first.
func openUnlocked(in *tree, name string, i inode) (*tree, error) {
	if err := unlock(in, name, i); err != nil {
		return nil, err
	}
	return in.sub(name)
}

// lock gives a directory back the mode that its run left it with.
func (l *cacheLander) lock(in *tree, name, path string, run inode) error {
	if mode := l.mode(path, run); run.kind == directory && mode&0o700 != 0o700 {
		return in.chmod(name, mode)
	}
	return nil
}
