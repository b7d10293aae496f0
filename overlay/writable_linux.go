package overlay

import (
	"errors"

	"golang.org/x/sys/unix"
)

// A write to a file takes no right to its directory, and a rename does. So where a directory of the workspace forbids
// its owner to change the names in it, a landing makes it writable for as long as it takes. The journal says which
// those are.

// openable lists the directories of the workspace that steps change names in and that are not writable
// for their owner. Root needs no mode.
func (l *lander) openable() ([]recordedDir, error) {
	if rootRights() {
		return nil, nil
	}
	var dirs []recordedDir
	seen := map[string]bool{}
	for _, s := range l.steps {
		path := parentPath(s.path)
		if s.kind == applyMode || seen[path] {
			continue
		}
		seen[path] = true
		i, err := l.host.stat(path)
		if err != nil {
			return nil, err
		}
		if i.kind == directory && i.mode&0o300 != 0o300 {
			dirs = append(dirs, recordedDir{rawPath(path), i.ino, i.mode})
		}
	}
	return dirs, nil
}

// allow makes a directory writable for its owner. Where it is not ours to open, the rename that needs
// it says so.
func (l *lander) allow(t *tree, path string) {
	i, err := t.stat(path)
	if err != nil || i.kind != directory || i.mode&0o300 == 0o300 {
		return
	}
	open := func() error { return t.chmod(path, i.mode|0o700) }
	if t == l.host {
		err = l.tread(path, open)
	} else {
		err = open()
	}
	if err != nil {
		return
	}
	if _, known := l.modes[path]; !known && t == l.host {
		l.modes[path] = i
	}
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

// restoreModes gives the directories that were made writable the modes that they had.
func (l *lander) restoreModes() error {
	var failed []error
	for path, was := range l.modes {
		now, err := l.host.stat(path)
		// The landing may have put something else there since.
		if err == nil && now.kind == directory && now.ino == was.ino {
			err = l.tread(path, func() error { return l.host.chmod(path, was.mode) })
		}
		if err != nil && !is(err, unix.ENOENT) {
			failed = append(failed, err)
		}
	}
	clear(l.modes)
	return errors.Join(failed...)
}

// closeOpened gives the directories that had to be writable their modes, where the process that opened
// them is gone.
func (l *lander) closeOpened() error {
	var failed []error
	for _, dir := range l.opened {
		now, err := l.host.stat(string(dir.Path))
		if err == nil && now.kind == directory && now.ino == dir.Ino && now.mode == dir.Mode|0o700 {
			err = l.host.chmod(string(dir.Path), dir.Mode)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
