package overlay

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// ready makes what the layer has at the path of a step what shall be in the workspace.
func (l *lander) ready(s step) error {
	for _, path := range s.prune {
		if err := l.prune(path); err != nil {
			return err
		}
	}
	if s.run.kind == symlink {
		return nil
	}
	return l.finish(s.path, s.run.kind, s.host)
}

// prune takes something out of a new directory without a trace in the directory's times.
func (l *lander) prune(path string) error {
	dir, err := l.t.upper.stat(parentPath(path))
	if err != nil {
		return err
	}
	l.taken++
	err = l.move(l.t.upper, path, l.t.dir, "taken/"+strconv.Itoa(l.taken), unix.RENAME_NOREPLACE)
	if is(err, unix.ENOENT) {
		return nil // went with a directory that was pruned
	}
	if err != nil {
		return err
	}
	return l.t.upper.through(parentPath(path), func(proc string) error {
		times := []unix.Timespec{
			{Nsec: unix.UTIME_OMIT},
			{Sec: dir.mtime.sec, Nsec: int64(dir.mtime.nsec)},
		}
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, proc, times, 0); err != nil {
			return l.t.upper.fail("set times of", parentPath(path), err)
		}
		return l.t.upper.fail("chmod", parentPath(path), unix.Chmod(proc, dir.mode))
	})
}

// finish strips what must not land from a file, or from everything in a new directory, and gives it
// the mode that the run gave it. replaced is what lies in its place, if anything.
func (l *lander) finish(path string, k kind, replaced inode) error {
	if k == directory {
		names, err := l.t.upper.list(path)
		if err != nil {
			return err
		}
		for _, name := range names {
			below := joinPath(path, name)
			i, err := l.t.upper.stat(below)
			if err != nil {
				return err
			}
			if i.kind != regular && i.kind != directory {
				continue
			}
			if err := l.finish(below, i.kind, inode{}); err != nil {
				return err
			}
		}
	}
	capabilities := false
	err := l.t.upper.through(path, func(proc string) error {
		fail := func(op string, err error) error { return l.t.upper.fail(op, path, err) }
		now, err := l.t.upper.stat(path)
		if err != nil {
			return err
		}
		mode := now.landedMode()
		if was, changed := l.t.modes[path]; changed {
			was := inode{kind: k, mode: was}
			mode = was.landedMode()
		}
		capabilities, err = stripXattrs(proc)
		if err == unix.EACCES {
			// User attributes are written with the right to write the file.
			if err := unix.Chmod(proc, now.mode|0o600); err != nil {
				return fail("chmod", err)
			}
			now.mode |= 0o600
			capabilities, err = stripXattrs(proc)
		}
		if err != nil {
			return fail("remove attributes of", err)
		}
		if replaced.kind == regular && k == regular && replaced.gid != now.gid {
			_ = unix.Chown(proc, -1, int(replaced.gid)) // a group that we are not in can't be given
			now.mode |= setID                           // which it may have taken away
		}
		if mode != now.mode {
			return fail("chmod", unix.Chmod(proc, mode))
		}
		return nil
	})
	if capabilities {
		l.report.Withheld = append(l.report.Withheld, Withheld{Path: path, Why: "file capabilities removed"})
	}
	return err
}
