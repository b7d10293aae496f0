package overlay

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// stage makes everything that is to come what it shall be in the workspace, and moves it to the
// directory of the landing. Nothing in the workspace changes.
func (l *lander) stage(ctx context.Context) error {
	directories := false
	for i := range l.steps {
		s := &l.steps[i]
		if !s.puts() {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := l.stageStep(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", Quote(s.path), err)
		}
		directories = directories || s.run.kind == directory
	}
	return l.staged(ctx, directories)
}

func (l *lander) stageStep(ctx context.Context, s *step) error {
	if err := l.bring(ctx, *s); err != nil {
		return err
	}
	var err error
	if s.run, err = l.landing.stat(s.name()); err != nil {
		return err
	}
	return l.w.syncTree(l.landing, s.name())
}

// bring gets what a step puts to the directory of the landing.
func (l *lander) bring(ctx context.Context, s step) error {
	if s.tips != nil {
		return l.stageTips(s)
	}
	if err := l.ready(s); err != nil {
		return err
	}
	if l.t.layers == l.t.dir {
		return l.move(l.t.upper, s.path, l.landing, s.name(), unix.RENAME_NOREPLACE)
	}
	return l.copyIn(ctx, &s)
}

// staged ends the staging.
func (l *lander) staged(ctx context.Context, directories bool) error {
	if directories {
		m, err := takeMarker(ctx, l.t.dir)
		if err != nil {
			return err
		}
		l.marker = &m.at
	}
	if err := l.w.sync(l.landing, ""); err != nil {
		return err
	}
	// The way to it: RUN, SERVER, BASE.
	for _, dir := range []*tree{l.t.dir, l.w.scratch.server, l.w.scratch.base} {
		if err := l.w.sync(dir, ""); err != nil {
			return err
		}
	}
	return nil
}

func rootRights() bool { return os.Geteuid() == 0 }

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
	return l.clean(s.path, s.run.kind, s.host)
}

// prune takes something out of a new directory without a trace in the directory's times.
func (l *lander) prune(path string) error {
	dir, err := l.t.upper.stat(parentPath(path))
	if err != nil {
		return err
	}
	if l.pruned == 0 {
		if err := unix.Mkdirat(l.t.layers.fd, "pruned", 0o700); err != nil {
			return l.t.layers.fail("mkdir", "pruned", err)
		}
	}
	l.pruned++
	err = l.move(l.t.upper, path, l.t.layers, "pruned/"+strconv.Itoa(l.pruned), unix.RENAME_NOREPLACE)
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

// clean strips what must not land from a file, or from everything in a new directory, and gives it
// the mode that the run gave it. replaced is what lies in its place, if anything.
func (l *lander) clean(path string, k kind, replaced inode) error {
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
			if err := l.clean(below, i.kind, inode{}); err != nil {
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
