package overlay

import (
	"errors"

	"golang.org/x/sys/unix"
)

// takeAway moves a file or link out of the workspace, into the directory of the landing.
func (l *lander) takeAway(s step) error {
	held, now, err := l.holdAsJudged(s)
	if err != nil && err != errLate {
		return err
	}
	defer held.release()
	if err == errLate && now.kind == absent {
		return nil // someone else removed it: just what the run did
	}
	if err != nil {
		return err
	}
	err = l.move(l.host, s.path, l.landing, s.name(), unix.RENAME_NOREPLACE)
	if is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	got, err := l.landing.stat(s.name())
	if err != nil || !got.same(s.host) || held.wanted() {
		// It changed between the look and the rename, or is about to.
		return l.returned(s, err)
	}
	l.taken[s.index] = true
	l.moved[s.host.ino] = true
	l.tookAway(s.path)
	l.leftUnder(now, got)
	return nil
}

// returned gives back what turned out to be another thing than was judged.
func (l *lander) returned(s step, cause error) error {
	err := l.move(l.landing, s.name(), l.host, s.path, unix.RENAME_NOREPLACE)
	if is(err, unix.EEXIST, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) {
		// Someone made something else there meanwhile, or took the directory away.
		var to string
		if to, err = l.beside(s); err == nil {
			l.note(s.path, "was changed twice while this run was landing; what was there in between is %s", to)
		}
	}
	if err := errors.Join(cause, err); err != nil {
		return err
	}
	return errLate
}

// removeDir moves a directory out that is empty by now. It is unlinked only once the landing is done:
// until then it can be given back as it is.
func (l *lander) removeDir(s step) error {
	now, err := l.host.stat(s.path)
	if err != nil || now.kind == absent {
		return err
	}
	if now.kind != directory || now.ino != s.host.ino || now.mounted {
		return errLate
	}
	if names, err := l.host.list(s.path); err != nil && !is(err, unix.ENOENT) {
		return err
	} else if len(names) > 0 {
		return errLate // someone put something into it
	}
	err = l.move(l.host, s.path, l.landing, s.name(), unix.RENAME_NOREPLACE)
	if is(err, unix.ENOENT) {
		return nil
	}
	if is(err, unix.EBUSY) {
		return errLate
	}
	if is(err, unix.EXDEV) {
		return l.replaceDir(s)
	}
	if err != nil {
		return err
	}
	got, err := l.landing.stat(s.name())
	if err == nil && got.kind == directory && got.ino == s.host.ino {
		var names []string
		if names, err = l.landing.list(s.name()); err == nil && len(names) == 0 {
			l.taken[s.index] = true
			l.tookAway(s.path)
			return nil
		}
	}
	return l.returned(s, err)
}

// replaceDir removes an empty directory that can't move: in a workspace that is an overlay itself, one of its
// lower layer does not. What is given back, if the landing is taken back, is another directory that is like it.
func (l *lander) replaceDir(s step) error {
	attrs, err := l.host.attributes(s.path)
	if err != nil {
		return err
	}
	err = l.landing.fail("mkdir", s.name(), unix.Mkdirat(l.landing.fd, s.name(), 0o700))
	if err == nil {
		err = l.landing.setAttributes(s.name(), s.host, attrs)
	}
	if err == nil {
		err = l.host.parent(s.path, func(fd int, name string) error {
			l.host.point()
			return l.tread(parentPath(s.path), func() error {
				return l.host.fail("remove", s.path, unix.Unlinkat(fd, name, unix.AT_REMOVEDIR))
			})
		})
	}
	if err == nil {
		l.taken[s.index] = true
		l.tookAway(s.path)
		return nil
	}
	if e := unix.Unlinkat(l.landing.fd, s.name(), unix.AT_REMOVEDIR); e != nil && e != unix.ENOENT {
		return errors.Join(err, l.landing.fail("remove", s.name(), e))
	}
	switch {
	case is(err, unix.ENOENT):
		return nil
	case is(err, unix.ENOTEMPTY, unix.EEXIST, unix.EBUSY, unix.ENOTDIR):
		return errLate
	}
	return err
}

// putNew moves something to where nothing is.
func (l *lander) putNew(s step) error {
	err := l.move(l.landing, s.name(), l.host, s.path, unix.RENAME_NOREPLACE)
	if is(err, unix.EEXIST) {
		return errLate
	}
	if err != nil {
		return err
	}
	l.taken[s.index] = true
	return l.noteStamp(s, s.path)
}

// swapIn exchanges what the run has with what the workspace has, and looks at what came out.
func (l *lander) swapIn(s step) error {
	held, now, err := l.holdAsJudged(s)
	defer held.release()
	if err != nil {
		return err
	}
	err = l.exchange(s)
	if is(err, unix.ENOENT) {
		return errLate // it is gone from the workspace
	}
	if err != nil {
		return err
	}
	got, err := l.landing.stat(s.name())
	if err != nil || !got.same(s.host) || held.wanted() {
		if err := errors.Join(err, l.exchangeBack(s, got)); err != nil {
			return err
		}
		return errLate
	}
	l.taken[s.index] = true
	l.moved[s.host.ino] = true
	l.leftUnder(now, got)
	return l.noteStamp(s, s.path)
}

// exchange swaps what the landing has of a step with what is at its path.
func (l *lander) exchange(s step) error {
	return l.move(l.landing, s.name(), l.host, s.path, unix.RENAME_EXCHANGE)
}

// exchangeBack takes an exchange back that brought out what was there before: the landing then has
// what the step puts. What someone else put in its place meanwhile stays at the path, as the newest, and
// the landing has what was there before.
func (l *lander) exchangeBack(s step, before inode) error {
	const tries = 4 // an even number, should someone do nothing but this
	for range tries {
		err := l.exchange(s)
		if is(err, unix.ENOENT) {
			return nil // someone removed it
		}
		if err != nil {
			return err
		}
		out, err := l.landing.stat(s.name())
		if err != nil || out.ino == s.run.ino || out.ino == before.ino {
			return err
		}
	}
	return nil
}

// holdAsJudged looks once more right before a path is changed, and holds it from then on.
func (l *lander) holdAsJudged(s step) (held lease, now inode, err error) {
	held, now, err = l.host.hold(s.path, s.host)
	if err != nil {
		return held, now, err
	}
	judged := s.host
	if l.moved[judged.ino] {
		judged.ctime = now.ctime // another name of what we moved just now
	}
	if now != judged {
		return held, now, errLate
	}
	return held, now, nil
}

// conflict reports that a path stays as someone else left it.
func (l *lander) conflict(path, keptAs string) {
	now, err := l.host.stat(path)
	l.report.Conflicts = append(l.report.Conflicts, Conflict{Path: reportPath(path), KeptAs: keptAs, Gone: err == nil && now.kind == absent})
}

// putBeside moves the run's version to a name of its own.
func (l *lander) putBeside(s step) error {
	to, err := l.beside(s)
	if err == nil {
		err = l.noteStamp(s, to)
	}
	if err != nil {
		return err
	}
	l.conflict(s.path, to)
	return nil
}

// beside moves what the landing has of a step to the first conflict name that is free, beside the
// path, or where its directory has gone, beside that.
func (l *lander) beside(s step) (to string, err error) {
	dir := parentPath(s.path)
	for attempt := 1; ; {
		to = joinPath(dir, conflictName(baseName(s.path), l.runID, attempt))
		err = l.move(l.landing, s.name(), l.host, to, unix.RENAME_NOREPLACE)
		switch {
		case is(err, unix.EEXIST):
			attempt++
		case is(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) && dir != "":
			dir = parentPath(dir)
		default:
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
	l.taken[s.index] = true
	return nil
}

// move renames, and where the mode of a directory forbids that, as it does not forbid a write to a
// file in it, makes the directory writable for that long.
func (l *lander) move(from *tree, fromPath string, to *tree, toPath string, flags uint) error {
	err := l.rename(from, fromPath, to, toPath, flags)
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
	err = l.rename(from, fromPath, to, toPath, flags)
	return errors.Join(err, restore(err), restoreOther(err))
}

// rename is move, with the footprint that it leaves in the workspace.
func (l *lander) rename(from *tree, fromPath string, to *tree, toPath string, flags uint) error {
	rename := func() error { return move(from, fromPath, to, toPath, flags) }
	switch l.host {
	case from:
		return l.tread(parentPath(fromPath), rename)
	case to:
		return l.tread(parentPath(toPath), rename)
	}
	return rename()
}
