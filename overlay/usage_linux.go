package overlay

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// inodeCost is the least that a file, link or directory counts for, in bytes. An empty one has no blocks,
// but a filesystem has only so many inodes.
const inodeCost = 4096

// Usage returns how many bytes of disk the layer takes: blocks of files, each inode once however many
// names it has, and of directories. It may be called while the run goes on, and then leaves out what
// it can't read or what went away meanwhile. Its cost grows with the number of entries in the layer.
func (t *Txn) Usage(ctx context.Context) (int64, error) {
	return t.usage(ctx, nil)
}

// FinalUsage is [Txn.Usage] for a layer that nothing writes to any more: it leaves nothing out, whatever
// modes the run gave its directories.
func (t *Txn) FinalUsage(ctx context.Context) (int64, error) {
	return t.usage(ctx, t.modes)
}

// usage adds up what the layers of the transaction take; of copies, what the run made them grow.
func (t *Txn) usage(ctx context.Context, modes map[string]uint32) (int64, error) {
	bytes, err := layerUsage(ctx, t.upper, t.copied, modes)
	for _, l := range t.inner {
		if l.readOnly {
			continue
		}
		var own map[string]uint32
		if modes != nil {
			own = map[string]uint32{}
		}
		more, e := layerUsage(ctx, l.upper, l.copied, own)
		bytes, err = bytes+more, errors.Join(err, e)
	}
	if t.git != nil {
		if modes != nil {
			modes = t.git.modes
		}
		more, e := t.git.usage(ctx, modes)
		bytes, err = bytes+more, errors.Join(err, e)
	}
	return bytes, err
}

func layerUsage(ctx context.Context, upper *tree, copied *privateCopy, modes map[string]uint32) (int64, error) {
	from := upper
	if copied != nil {
		from = copied.tree
	}
	u := usage{tree: from.trailing(), seen: map[uint64]bool{}, modes: modes}
	defer u.tree.release()
	err := u.dir(ctx, "")
	if copied != nil {
		return max(0, u.bytes-copied.size), err
	}
	return u.bytes, err
}

// DirUsage returns how many bytes a directory of ours, which belongs to no transaction, takes on its filesystem, counted as
// [Txn.Usage] counts a layer. final says that nothing writes to it any more: then nothing is left out, and directories that can't
// be read are made readable. The errors are the filesystem's and ctx's.
func DirUsage(ctx context.Context, dir string, final bool) (int64, error) {
	t, err := openTree(dir)
	if err != nil {
		return 0, err
	}
	defer t.close()
	var modes map[string]uint32
	if final {
		modes = map[string]uint32{}
	}
	return layerUsage(ctx, t, nil, modes)
}

// Free returns how many bytes a user without privileges can still write to the layer's filesystem, in
// files of inodeCost if it has fewer inodes than blocks left.
func (t *Txn) Free() (int64, error) {
	free, err := freeAt(t.upper)
	if err != nil {
		return 0, err
	}
	if t.git != nil {
		more, err := t.git.Free()
		return min(free, more), err
	}
	return free, nil
}

// DirFree returns how many bytes can still be written to the filesystem of a directory of ours, as [Txn.Free] does. The errors
// are the filesystem's.
func DirFree(dir string) (int64, error) {
	t, err := openTree(dir)
	if err != nil {
		return 0, err
	}
	defer t.close()
	return freeAt(t)
}

func freeAt(dir *tree) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(dir.fd, &st); err != nil {
		return 0, dir.fail("statfs", "", err)
	}
	free := int64(st.Bavail) * st.Frsize
	if st.Files > 0 { // some make inodes as they need them, and say 0
		free = min(free, int64(st.Ffree)*inodeCost)
	}
	return free, nil
}

// longestPath is the longest path of a layer that is measured. A run can nest directories deeper than one
// path can name, and each longer path takes longer to make.
const longestPath = 8 * unix.PathMax

var errTooDeep = errors.New("directories lie too deep in one another")

// usage adds up what a tree takes.
type usage struct {
	tree  *tree
	bytes int64
	seen  map[uint64]bool // inodes that have more than one name
	// modes takes the modes of directories that had to be made readable; nil leaves such ones out.
	modes map[string]uint32
}

func (u *usage) dir(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if len(path) > longestPath {
		return u.missed(errTooDeep)
	}
	if u.modes != nil {
		if err := u.open(path); err != nil {
			return err
		}
	}
	names, err := u.tree.list(path)
	if err != nil {
		return u.missed(err)
	}
	var dirs []string
	err = u.tree.at(path, func(fd int) error {
		for _, name := range names {
			var st unix.Stat_t
			if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				if err := u.missed(u.tree.fail("stat", joinPath(path, name), err)); err != nil {
					return err
				}
				continue
			}
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				dirs = append(dirs, joinPath(path, name))
			} else if st.Nlink > 1 {
				if u.seen[st.Ino] {
					continue
				}
				u.seen[st.Ino] = true
			}
			u.bytes += max(st.Blocks*512, inodeCost) // st_blocks counts 512s, whatever the filesystem's own are
		}
		return nil
	})
	if err != nil {
		return u.missed(err)
	}
	for _, dir := range dirs {
		if err := u.dir(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}

// missed forgives what a run that goes on can bring about: one thing that can't be measured must not
// hide the rest.
func (u *usage) missed(err error) error {
	if u.modes == nil {
		return nil
	}
	return err
}

// open makes sure that a directory is readable, and notes what its mode was.
func (u *usage) open(path string) error {
	i, err := u.tree.stat(path)
	if err != nil || i.mode&0o500 == 0o500 {
		return err
	}
	if _, known := u.modes[path]; !known {
		u.modes[path] = i.mode
	}
	if path == "" { // which may not even be looked up from itself
		return u.tree.fail("chmod", "", unix.Fchmod(u.tree.fd, i.mode|0o700))
	}
	return u.tree.chmod(path, i.mode|0o700)
}
