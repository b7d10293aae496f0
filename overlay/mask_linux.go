package overlay

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"airlock/internal/clearing"
)

// masks makes the layers that hide paths from runs. A mask is a lower layer above the workspace: a
// whiteout for each name that is hidden, in directories that look like the workspace's own. What a run
// writes goes to its upper layer as ever, where nothing of a mask is ever seen, and nothing is mounted
// over or made in the workspace. What someone puts at a hidden path while a run goes on stays hidden.
//
// A mask serves any number of runs and never changes in what it hides, since overlays remember what they
// looked up. If something else is to be hidden, the next run gets a new one.
type masks struct {
	index *hiddenIndex

	mu      sync.Mutex
	made    int
	current *mask
}

type mask struct {
	in   *tree // the directory of this server, on the filesystem of the layers
	name string
	dirs []hidingDir
	runs int // that use it
}

// take returns the mask for a run that begins now, nil if there is nothing to hide, and the directories
// that it shows in place of the workspace's, as they were just now. The caller gives it back by release.
func (m *masks) take(now stamp, in *tree) (*mask, []hidingDir, error) {
	if m == nil {
		return nil, nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	dirs, err := m.index.look(now)
	if err != nil {
		return nil, nil, fmt.Errorf("look for what is hidden: %w", err)
	}
	if m.current == nil || m.current.in != in || !slices.EqualFunc(m.current.dirs, dirs, hidingDir.hidesLike) {
		if err := m.renew(in, dirs); err != nil {
			return nil, nil, fmt.Errorf("hide paths: %w", err)
		}
	} else if err := m.refresh(dirs); err != nil {
		return nil, nil, fmt.Errorf("hide paths: %w", err)
	}
	if len(dirs) == 0 {
		return nil, nil, nil
	}
	m.current.runs++
	return m.current, dirs, nil
}

// hidesLike reports whether two directories hide the same, whatever else became of them.
func (d hidingDir) hidesLike(o hidingDir) bool {
	return d.path == o.path && d.all == o.all && slices.Equal(d.hidden, o.hidden)
}

// release gives a mask back.
func (m *masks) release(used *mask) error {
	if used == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	used.runs--
	if used.runs > 0 || used == m.current {
		return nil
	}
	return clearing.Beneath(used.in.fd, used.name)
}

// path is where a mask lies; "" for none.
func (k *mask) path() string {
	if k == nil {
		return ""
	}
	return filepath.Join(k.in.path, k.name)
}

// renew makes a new mask. The mutex is held.
func (m *masks) renew(in *tree, dirs []hidingDir) error {
	if old := m.current; old != nil && old.runs == 0 {
		if err := clearing.Beneath(old.in.fd, old.name); err != nil {
			return err
		}
	}
	m.made++
	next := &mask{in: in, name: "mask-" + strconv.Itoa(m.made), dirs: dirs}
	m.current = nil
	if len(dirs) > 0 {
		if err := m.build(next); err != nil {
			return errors.Join(err, clearing.Beneath(in.fd, next.name))
		}
	}
	m.current = next
	return nil
}

func (m *masks) build(k *mask) error {
	for _, d := range k.dirs {
		if err := unix.Mkdirat(k.in.fd, k.at(d), 0o700); err != nil {
			return k.in.fail("mkdir", k.at(d), err)
		}
		if err := m.fill(k, d); err != nil {
			return err
		}
	}
	// The inner ones first: a directory's times are those of the last change in it.
	for _, d := range slices.Backward(k.dirs) {
		if err := m.resemble(k, d); err != nil {
			return err
		}
	}
	return nil
}

// at is where a mask has a directory of the workspace.
func (k *mask) at(d hidingDir) string { return strings.TrimSuffix(k.name+"/"+d.path, "/") }

// fill makes the whiteouts of a directory.
func (m *masks) fill(k *mask, d hidingDir) error {
	return k.in.at(k.at(d), func(fd int) error {
		if d.all {
			err := unix.Setxattr(procName(fd), "user.overlay.opaque", []byte("y"), 0)
			return k.in.fail("set attributes of", k.at(d), err)
		}
		for i, name := range d.hidden {
			err := error(unix.EMLINK)
			if i > 0 {
				err = unix.Linkat(fd, d.hidden[0], fd, name, 0)
			}
			if err == unix.EMLINK || err == unix.EPERM { // too many, or fs.protected_hardlinks
				err = unix.Mknodat(fd, name, unix.S_IFCHR, 0)
			}
			if err != nil {
				return k.in.fail("make whiteout", joinPath(k.at(d), name), err)
			}
		}
		return nil
	})
}

// refresh makes the directories of the current mask look like those that have changed since. Runs that
// use it see that, as they see changes of the workspace.
func (m *masks) refresh(dirs []hidingDir) error {
	for i, d := range dirs {
		if was := m.current.dirs[i].inode; was.ino == d.inode.ino && was.ctime == d.inode.ctime {
			continue
		}
		if err := m.resemble(m.current, d); err != nil {
			return err
		}
	}
	m.current.dirs = dirs
	return nil
}

// resemble gives a directory of a mask what a run sees of the workspace's: owner, mode, attributes, times.
func (m *masks) resemble(k *mask, d hidingDir) error {
	path := k.at(d)
	return k.in.through(path, func(proc string) error {
		own, err := k.in.stat(path)
		if err != nil {
			return err
		}
		if own.uid != d.inode.uid || own.gid != d.inode.gid {
			// Where that is not ours to give, the run finds the server's user in its place.
			if err := unix.Chown(proc, int(d.inode.uid), int(d.inode.gid)); err != nil {
				_ = unix.Chown(proc, -1, int(d.inode.gid))
			}
		}
		if err := m.copyXattrs(d.path, proc); err != nil {
			return err
		}
		if err := unix.Chmod(proc, d.inode.mode); err != nil {
			return k.in.fail("chmod", path, err)
		}
		return k.in.fail("set times of", path, unix.UtimesNanoAt(unix.AT_FDCWD, proc, d.inode.mtime.alone(), 0))
	})
}

// copyXattrs copies the attributes and the access control list of a directory of the workspace. What
// can't be had or given is left out.
func (m *masks) copyXattrs(from, to string) error {
	err := m.index.host.through(from, func(proc string) error {
		names, err := xattrNames(proc, unix.Listxattr)
		if err != nil {
			return nil
		}
		for _, name := range names {
			if _, ours := overlayXattr(name); ours || !strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "system.posix_acl_") {
				continue
			}
			if value, err := xattrValue(proc, name, unix.Getxattr); err == nil && value != nil {
				_ = unix.Setxattr(to, name, value, 0)
			}
		}
		return nil
	})
	if is(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV, unix.EACCES) {
		return nil // it has just gone
	}
	return err
}
