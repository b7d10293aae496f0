package overlay

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// torn returns why the run's changes do not go together with what is there now, "" if they do.
func (u *gitUnit) torn() (string, error) {
	state := false
	for _, ch := range u.changes {
		switch part := u.part(ch); {
		case part == gitState && ch.conflict, part == gitObjects && ch.kind == remove && ch.conflict:
			return whyTorn, u.readIndexes()
		case part == gitState || part == gitIndex || part == gitObjects && ch.kind == remove:
			state = true
		}
	}
	if !state {
		return "", nil
	}
	if err := u.readIndexes(); err != nil {
		return "", err
	}
	for _, lock := range []string{"index.lock", "HEAD.lock", "packed-refs.lock", "gc.pid"} {
		if lock == "index.lock" || lock == "HEAD.lock" {
			lock = u.own(lock)
		} else {
			lock = u.below(lock)
		}
		i, err := u.c.host.stat(lock)
		if err != nil {
			return "", err
		}
		if i.kind != absent {
			return fmt.Sprintf("git is at work there, or left %s", Quote(lock)), nil
		}
	}
	if u.shared() != nil {
		return u.tornOwn()
	}
	for _, name := range []string{"HEAD", "packed-refs"} {
		i, err := u.c.host.stat(u.below(name))
		if err != nil {
			return "", err
		}
		if u.c.looked(u.below(name), i) {
			return whyTorn, nil
		}
	}
	if !u.sameIndex {
		return whyTorn, nil
	}
	for _, dir := range []string{"refs", "reftable"} {
		moved, err := u.moved(u.below(dir), 0)
		if err != nil || moved {
			return whyTorn, err
		}
	}
	return "", nil
}

// tornOwn is torn for what belongs to the run's own working tree. What other working trees do to their branches
// meanwhile is none of its business, and a ref that both changed is in conflict.
func (u *gitUnit) tornOwn() (string, error) {
	head, err := u.c.host.stat(u.own("HEAD"))
	if err != nil {
		return "", err
	}
	if u.c.looked(u.own("HEAD"), head) || !u.sameIndex {
		return whyTorn, nil
	}
	text, err := gitSide{u.c, false}.read(u.own("HEAD"), gitRefLimit)
	if err != nil {
		return "", err
	}
	if ref, symbolic := symbolicRef(string(text)); symbolic {
		i, err := u.c.host.stat(u.below(ref))
		if err != nil || u.c.looked(u.below(ref), i) {
			return whyTorn, err
		}
	}
	return "", nil
}

// moved reports whether someone changed a ref below a directory of the workspace.
func (u *gitUnit) moved(dir string, depth int) (bool, error) {
	i, err := u.c.host.stat(dir)
	if err != nil || i.kind != directory {
		return u.c.looked(dir, i), err
	}
	// A ref that is gone leaves its trace here.
	if u.c.looked(dir, i) || depth > 64 {
		return true, nil
	}
	names, err := u.c.host.list(dir)
	if is(err, unix.ENOENT, unix.ENOTDIR) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	var dirs []string
	touched := false
	err = u.c.host.at(dir, func(fd int) error {
		for _, name := range names {
			i, err := statAt(fd, name)
			if err != nil {
				return err
			}
			if i.kind == directory {
				dirs = append(dirs, name)
			} else {
				touched = touched || i.kind == absent || u.c.looked(joinPath(dir, name), i) || strings.HasSuffix(name, ".lock")
			}
		}
		return nil
	})
	if err != nil || touched {
		return touched, err
	}
	for _, name := range dirs {
		if moved, err := u.moved(joinPath(dir, name), depth+1); err != nil || moved {
			return moved, err
		}
	}
	return false, u.c.alive()
}

// looked reports whether someone changed what is at a path, and notes for a run that waits that it counted.
func (c *collector) looked(path string, host inode) bool {
	c.note(place{}, path, host)
	if host.kind == directory {
		return c.dirTouched(path, host)
	}
	return c.touched(path, host)
}

// readIndexes compares the entries of the indexes.
func (u *gitUnit) readIndexes() error {
	i, err := u.c.host.stat(u.own("index"))
	if err != nil {
		return err
	}
	own, ownErr := u.digest(u.c.upper)
	if !u.c.looked(u.own("index"), i) && i.kind != absent {
		u.sameIndex = true
		if ownErr == nil {
			now, err := u.digest(u.c.host)
			u.ownIndex = err == nil && own == now
		}
		return nil
	}
	base := u.c.base
	if i.kind == absent {
		// There is none yet, unless someone removed it.
		u.sameIndex = base.path != u.path || base.index == nil
		return nil
	}
	now, err := u.digest(u.c.host)
	if err != nil {
		return nil // what can't be read counts as changed
	}
	u.ownIndex = ownErr == nil && own == now
	if base.path == u.path && base.index != nil {
		if was, err := base.digest(); err == nil {
			u.sameIndex = was == now
			u.ownIndex = u.ownIndex || ownErr == nil && own == was
		}
	}
	// Whoever it was that came to the entries of the run's index, nothing is lost.
	u.sameIndex = u.sameIndex || u.ownIndex && ownErr == nil && own == now
	return nil
}

func (u *gitUnit) digest(t *tree) (indexDigest, error) {
	f, err := t.file(u.own("index"))
	if err != nil {
		return indexDigest{}, err
	}
	defer f.Close()
	i, err := statAt(int(f.Fd()), "")
	if err != nil {
		return indexDigest{}, err
	}
	if i.kind != regular {
		return indexDigest{}, errors.New("the index is no file")
	}
	return readIndex(f)
}
