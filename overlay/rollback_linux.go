package overlay

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// rollBack makes the workspace what it was before the first step, whichever steps were taken. It goes
// by the steps and by what lies on the disk, and by nothing that only the process knows that took
// them: so it is the same in that process and in one that comes after its death, and as often as it
// is begun anew.
//
// Whether a step was taken shows in the directory of the landing: what the step puts is still there,
// or it is not; what it takes is there, or not. What someone else made of a path since then stays,
// and what would have to come back there goes beside.
func (l *lander) rollBack() error {
	var failed []error
	for i := len(l.steps) - 1; i >= 0; i-- {
		if err := l.untake(l.steps[i]); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", Quote(reportPath(l.steps[i].path)), err))
		}
	}
	failed = append(failed, l.restoreModes(), l.closeOpened())
	if l.stampsFile != nil {
		failed = append(failed, l.stampsFile.Close())
	}
	if l.w.config.Durable {
		failed = append(failed, l.syncParents(l.steps))
	}
	return errors.Join(failed...)
}

// untake takes back one step, if it was taken.
func (l *lander) untake(s step) error {
	switch s.kind {
	case applyMode:
		return l.resetMode(s, s.run.mode)
	case takeAway:
		return l.giveBack(s)
	case removeDir:
		if err := l.giveBack(s); err != nil {
			return err
		}
		return l.resetMode(s, s.host.mode|0o700) // it was opened to be moved
	}
	here, err := l.landing.stat(s.name())
	if err != nil {
		return err
	}
	busy := false
	switch {
	case here.kind == absent:
		busy, err = l.withdraw(s)
	case here.ino != s.run.ino:
		busy, err = l.swapBack(s)
	}
	if err != nil {
		return err
	}
	return l.spare(s, busy)
}

// giveBack puts what a step took out of the workspace where it was.
func (l *lander) giveBack(s step) error {
	here, err := l.landing.stat(s.name())
	if err != nil || here.kind == absent {
		return err // not taken, or given back already
	}
	if s.kind == removeDir {
		now, err := l.host.stat(s.path)
		if err != nil {
			return err
		}
		if now.kind == directory && now.ino == s.host.ino {
			// One that could not move, and that was not removed yet: see replaceDir.
			return l.landing.fail("remove", s.name(), unix.Unlinkat(l.landing.fd, s.name(), unix.AT_REMOVEDIR))
		}
	}
	err = l.move(l.landing, s.name(), l.host, s.path, unix.RENAME_NOREPLACE)
	if !is(err, unix.EEXIST, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) {
		return err
	}
	to, err := l.beside(s)
	l.note(s.path, "was changed while this landing was taken back and stays; what was there is %s", to)
	return err
}

// swapBack undoes an exchange: the landing has what was in the workspace. It reports whether someone
// writes to what the step put, or is about to.
func (l *lander) swapBack(s step) (busy bool, err error) {
	now, err := l.host.stat(s.path)
	if err != nil {
		return false, err
	}
	if now.ino == s.run.ino && now.kind == s.run.kind {
		held, _, err := l.host.hold(s.path, now)
		if err != nil && err != errOpen {
			return false, err
		}
		defer held.release()
		busy = err == errOpen
		edited, err := l.edited(s, now)
		if err != nil {
			return busy, err
		}
		busy = busy || edited
		was, err := l.landing.stat(s.name())
		if err != nil {
			return busy, err
		}
		if err := l.exchangeBack(s, was); err != nil {
			return busy, err
		}
		out, err := l.landing.stat(s.name())
		if err != nil || out.ino == s.run.ino {
			return busy || held.wanted(), err
		}
	}
	to, err := l.beside(s)
	l.note(s.path, "was changed while this landing was taken back and stays; what was there is %s", to)
	return false, err
}

// withdraw takes back what was put at the path of a step, or beside it. It reports whether someone
// is about to write to it.
func (l *lander) withdraw(s step) (busy bool, err error) {
	path, now, err := l.where(s)
	if err != nil || now.kind == absent {
		return false, err // someone took it elsewhere, or removed it
	}
	return l.withdrawFrom(path, s, now)
}

// where finds what a step put: at its path, or at a conflict name.
func (l *lander) where(s step) (path string, now inode, err error) {
	for attempt := 0; ; attempt++ {
		path := s.path
		if attempt > 0 {
			path = joinPath(parentPath(s.path), conflictName(baseName(s.path), l.runID, attempt))
		}
		now, err := l.host.stat(path)
		if err != nil || now.ino == s.run.ino && now.kind == s.run.kind {
			return path, now, err
		}
		if now.kind == absent && attempt > 0 {
			return "", inode{}, nil
		}
	}
}

func (l *lander) withdrawFrom(path string, s step, now inode) (busy bool, err error) {
	held, _, err := l.host.hold(path, now)
	if err != nil && err != errOpen {
		return false, err
	}
	defer held.release()
	changed := err == errOpen
	if !changed {
		if changed, err = l.edited(s, now); err != nil {
			return false, err
		}
	}
	if !changed {
		if changed, err = l.changed(l.host, path, s); err != nil {
			return false, err
		}
	}
	if changed {
		l.note(path, "was changed while this run was landing and stays")
		return false, nil
	}
	err = l.move(l.host, path, l.landing, s.name(), unix.RENAME_NOREPLACE)
	if is(err, unix.ENOENT) {
		return false, nil // someone removed it
	}
	if err != nil {
		return false, err
	}
	got, err := l.landing.stat(s.name())
	if err != nil || got.ino == s.run.ino {
		return held.wanted(), err
	}
	// Someone put something else in its place meanwhile.
	err = l.move(l.landing, s.name(), l.host, path, unix.RENAME_NOREPLACE)
	if is(err, unix.EEXIST, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) {
		var to string
		to, err = l.beside(s)
		l.note(path, "was changed twice while this landing was taken back; what was there in between is %s", to)
	}
	return false, err
}

// spare looks at what a step put and the landing has again: if someone changed it while it was in the
// workspace, or is about to, it goes there beside the path.
func (l *lander) spare(s step, busy bool) error {
	here, err := l.landing.stat(s.name())
	if err != nil || here.kind == absent || here.ino != s.run.ino {
		return err
	}
	changed := busy || l.wasEdited(s)
	if !changed {
		changed, err = l.changed(l.landing, s.name(), s)
	}
	if err != nil || !changed {
		return err
	}
	to, err := l.beside(s)
	l.note(s.path, "was changed while this run was landing; that version is %s", to)
	return err
}

// changed reports whether someone changed what a step put, since it was staged.
func (l *lander) changed(t *tree, path string, s step) (bool, error) {
	now, err := t.stat(path)
	if err != nil || now.kind == absent {
		return false, err
	}
	if now.kind == directory && now.mode == s.run.mode|0o700 {
		now.mode = s.run.mode // as we open it, to move it
	}
	if !now.same(s.run) {
		return true, nil
	}
	if now.kind != directory {
		return false, nil
	}
	// Names that came or went in it moved its mtime, which a move of itself does not.
	if l.marker == nil || now.mtime != s.run.mtime {
		return true, nil
	}
	return l.changedBelow(t, path)
}

// changedBelow reports whether anything below a directory was changed since everything was staged.
func (l *lander) changedBelow(t *tree, path string) (bool, error) {
	names, err := t.list(path)
	if is(err, unix.EACCES) {
		return false, nil // as the run made it, and nobody but its owner could have opened it
	}
	if err != nil {
		return false, err
	}
	var dirs, files []string
	var seen []inode
	changed := false
	err = t.at(path, func(fd int) error {
		for _, name := range names {
			i, err := statAt(fd, name)
			if err != nil {
				return err
			}
			changed = changed || i.kind != absent && !i.ctime.before(*l.marker) && !l.otherName(i)
			switch i.kind {
			case directory:
				dirs = append(dirs, joinPath(path, name))
			case regular:
				files, seen = append(files, joinPath(path, name)), append(seen, i)
			}
		}
		return nil
	})
	for i, file := range files {
		if changed || err != nil {
			break
		}
		var held lease
		if held, _, err = t.hold(file, seen[i]); err == errOpen {
			return true, nil
		}
		held.release()
	}
	for _, dir := range dirs {
		if changed || err != nil {
			break
		}
		changed, err = l.changedBelow(t, dir)
	}
	if is(err, unix.EACCES) {
		return false, nil
	}
	return changed, err
}

// otherName reports whether a file has a name that a step put, which moved its ctime.
func (l *lander) otherName(now inode) bool {
	return now.links > 1 && slices.ContainsFunc(l.steps, func(s step) bool {
		return s.puts() && s.run.kind == regular && s.run.ino == now.ino && now.same(s.run)
	})
}

// resetMode gives a directory of the workspace the mode that it had, if it has the one that the
// landing gave it.
func (l *lander) resetMode(s step, given uint32) error {
	now, err := l.host.stat(s.path)
	if err != nil || now.kind != directory || now.ino != s.host.ino || now.mode != given || given == s.host.mode {
		return err
	}
	return l.host.chmod(s.path, s.host.mode)
}

// note adds a sentence on a path to the report. The arguments are paths.
func (l *lander) note(path, format string, args ...any) {
	for i, a := range args {
		args[i] = Quote(a.(string))
	}
	l.report.Notes = append(l.report.Notes, Quote(path)+" "+fmt.Sprintf(format, args...)+".")
}
