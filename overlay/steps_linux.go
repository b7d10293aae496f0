package overlay

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// takeAway moves a file or link out of the workspace, into the transaction's own directory, where it
// stays until the landing is done.
func (l *lander) takeAway(s step) error {
	now, err := l.asJudged(s)
	if err == errLate && now.kind == absent {
		return nil // someone else removed it: just what the run did
	}
	if err != nil {
		return err
	}
	l.taken++
	to := "taken/" + strconv.Itoa(l.taken)
	err = l.move(l.host, s.path, l.t.dir, to, unix.RENAME_NOREPLACE)
	if is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	back := func() error { return l.move(l.t.dir, to, l.host, s.path, unix.RENAME_NOREPLACE) }
	got, err := l.t.dir.stat(to)
	if err != nil || !got.same(s.host) {
		// It changed between the look and the rename.
		if err := back(); err != nil {
			l.undo = append(l.undo, back)
			return err
		}
		return late(err)
	}
	l.undo = append(l.undo, back)
	l.moved[s.host.ino] = true
	return nil
}

// late is errLate unless there is an error.
func late(err error) error {
	if err != nil {
		return err
	}
	return errLate
}

// removeDir removes a directory. It is not moved, as a file is: someone could hold it open and go on
// to make files in it.
func (l *lander) removeDir(s step) error {
	var gone bool
	unlink := func() error {
		return l.host.parent(s.path, func(fd int, name string) error {
			err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
			gone = err == nil
			return l.host.fail("rmdir", s.path, err)
		})
	}
	err := unlink()
	if is(err, unix.EACCES) {
		l.allow(l.host, parentPath(s.path))
		err = unlink()
	}
	switch {
	case is(err, unix.ENOENT):
		return nil
	case is(err, unix.ENOTEMPTY, unix.EEXIST, unix.ENOTDIR, unix.EBUSY):
		return errLate // someone put something into it, or in its place
	case err != nil || !gone:
		return err
	}
	l.undo = append(l.undo, func() error { return l.remakeDir(s) })
	return nil
}

// remakeDir makes a directory again that removeDir removed.
func (l *lander) remakeDir(s step) error {
	return l.host.parent(s.path, func(fd int, name string) error {
		if err := unix.Mkdirat(fd, name, 0o700); err != nil {
			return l.host.fail("mkdir", s.path, err)
		}
		if os.Geteuid() == 0 {
			if err := unix.Fchownat(fd, name, int(s.host.uid), int(s.host.gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return l.host.fail("chown", s.path, err)
			}
		}
		l.modes[s.path] = s.host.mode // set when the entries are back
		return nil
	})
}

// putNew moves something to where nothing is.
func (l *lander) putNew(s step) error {
	if err := l.ready(s); err != nil {
		return err
	}
	err := l.move(l.t.upper, s.path, l.host, s.path, unix.RENAME_NOREPLACE)
	if is(err, unix.EEXIST) {
		return errLate
	}
	if err != nil {
		return err
	}
	l.undo = append(l.undo, func() error { return l.withdraw(s, s.path) })
	return nil
}

// withdraw takes back what was put at path. Someone may have gone on from there already; theirs is
// kept then.
func (l *lander) withdraw(s step, path string) error {
	now, err := l.host.stat(path)
	if err != nil || now.kind == absent {
		return err
	}
	if now.ino != s.run.ino || s.run.kind == regular && (now.size != s.run.size || now.mtime != s.run.mtime) {
		l.report.Notes = append(l.report.Notes, Quote(path)+" was changed while this run was landing and stays.")
		return nil
	}
	return l.move(l.host, path, l.t.upper, s.path, unix.RENAME_NOREPLACE)
}

// swapIn exchanges what the run has with what the workspace has, and looks at what came out.
func (l *lander) swapIn(s step) error {
	if _, err := l.asJudged(s); err != nil {
		return err
	}
	if err := l.ready(s); err != nil {
		return err
	}
	swap := func() error { return l.move(l.t.upper, s.path, l.host, s.path, unix.RENAME_EXCHANGE) }
	err := swap()
	if is(err, unix.ENOENT) {
		return errLate // it is gone from the workspace
	}
	if err != nil {
		return err
	}
	got, err := l.t.upper.stat(s.path)
	if err != nil || !got.same(s.host) {
		if err := swap(); err != nil {
			l.undo = append(l.undo, swap)
			return err
		}
		return late(err)
	}
	l.moved[s.host.ino] = true
	l.undo = append(l.undo, func() error {
		if err := swap(); err != nil {
			return err
		}
		if out, err := l.t.upper.stat(s.path); err != nil || out.kind != regular ||
			out.size == s.run.size && out.mtime == s.run.mtime {
			return err
		}
		// Someone wrote to what had landed, and expects to find it.
		to, err := l.beside(s)
		l.report.Notes = append(l.report.Notes, Quote(s.path)+" was changed while this run was landing; that version is "+Quote(to)+".")
		return err
	})
	return nil
}

// asJudged looks once more right before a path is changed.
func (l *lander) asJudged(s step) (now inode, err error) {
	now, err = l.host.stat(s.path)
	if err != nil {
		return now, err
	}
	judged := s.host
	if l.moved[judged.ino] {
		judged.ctime = now.ctime // another name of what we moved just now
	}
	if now != judged {
		return now, errLate
	}
	return now, nil
}

// putBeside moves the run's version to a name of its own.
func (l *lander) putBeside(s step) error {
	if err := l.ready(s); err != nil {
		return err
	}
	to, err := l.beside(s)
	if err != nil {
		return err
	}
	l.undo = append(l.undo, func() error { return l.withdraw(s, to) })
	l.report.Conflicts = append(l.report.Conflicts, Conflict{Path: s.path, KeptAs: to})
	return nil
}

// beside moves what the layer has to the first conflict name that is free.
func (l *lander) beside(s step) (to string, err error) {
	for attempt := 1; ; attempt++ {
		to = joinPath(parentPath(s.path), conflictName(baseName(s.path), l.t.run, attempt))
		err = l.move(l.t.upper, s.path, l.host, to, unix.RENAME_NOREPLACE)
		if !is(err, unix.EEXIST) {
			return to, err
		}
	}
}

// applyMode sets the mode of a directory.
func (l *lander) applyMode(s step) error {
	now, err := l.host.stat(s.path)
	if err != nil {
		return err
	}
	// Its ctime moved by our own steps.
	if now.kind != directory || now.ino != s.host.ino || now.mode != s.host.mode {
		return errLate
	}
	if err := l.host.chmod(s.path, s.run.mode); err != nil {
		return err
	}
	l.undo = append(l.undo, func() error { return l.host.chmod(s.path, s.host.mode) })
	return nil
}

// move renames, and where the mode of a directory forbids that, as it does not forbid a write to a
// file in it, makes the directory writable for that long.
func (l *lander) move(from *tree, fromPath string, to *tree, toPath string, flags uint) error {
	err := move(from, fromPath, to, toPath, flags)
	if !is(err, unix.EACCES) {
		return err
	}
	l.allow(from, parentPath(fromPath))
	l.allow(to, parentPath(toPath))
	// A directory that moves is written, too: its ".." changes.
	restore := l.allowMove(from, fromPath, to, toPath)
	restoreOther := func(error) error { return nil }
	if flags&unix.RENAME_EXCHANGE != 0 {
		restoreOther = l.allowMove(to, toPath, from, fromPath)
	}
	err = move(from, fromPath, to, toPath, flags)
	return errors.Join(err, restore(err), restoreOther(err))
}

// allowMove makes a directory writable that is about to move. What it returns gives it its mode
// back, wherever it is by then.
func (l *lander) allowMove(from *tree, fromPath string, to *tree, toPath string) (restore func(moved error) error) {
	i, err := from.stat(fromPath)
	if err != nil || i.kind != directory || i.mode&0o300 == 0o300 || from.chmod(fromPath, i.mode|0o700) != nil {
		return func(error) error { return nil }
	}
	return func(moved error) error {
		if moved != nil {
			return from.chmod(fromPath, i.mode)
		}
		return to.chmod(toPath, i.mode)
	}
}

// allow makes a directory writable for its owner. Where it is not ours to open, the rename that needs
// it says so.
func (l *lander) allow(t *tree, path string) {
	i, err := t.stat(path)
	if err != nil || i.kind != directory || i.mode&0o300 == 0o300 || t.chmod(path, i.mode|0o700) != nil {
		return
	}
	if _, known := l.modes[path]; !known && t == l.host {
		l.modes[path] = i.mode
	}
}
