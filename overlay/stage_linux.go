package overlay

import (
	"context"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"airlock/internal/clearing"
)

// stage makes everything that is to come what it shall be in the workspace, and moves it to the
// directory of the landing. Nothing in the workspace changes.
func (l *lander) stage(ctx context.Context) error {
	l.upper = l.t.upper.trailing()
	defer l.upper.release()
	directories, linked := false, false
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
		linked = linked || s.linked
	}
	if linked {
		if err := l.dropNames(); err != nil {
			return err
		}
	}
	if err := l.staged(ctx, directories); err != nil || l.with == nil {
		return err
	}
	return l.with.stage(ctx)
}

// dropNames removes what does not land from the layer already now: it may be another name of what does, and
// the removal would move the ctime of that after the landing.
func (l *lander) dropNames() error {
	l.upper.release()
	if l.t.layers != l.t.dir {
		return nil // what lands is a copy
	}
	for _, name := range []string{"upper", "pruned"} {
		if err := clearing.Beneath(l.t.dir.fd, name); err != nil {
			return err
		}
	}
	return nil
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
		return l.move(l.upper, s.path, l.landing, s.name(), unix.RENAME_NOREPLACE)
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

// ready makes what the layer has at the path of a step what shall be in the workspace.
func (l *lander) ready(s step) error {
	for _, path := range s.prune {
		if err := l.prune(path); err != nil {
			return err
		}
	}
	for _, scrub := range s.scrubs {
		if err := l.upper.scrub(scrub); err != nil {
			return err
		}
	}
	return l.takeOver(s)
}

// takeOver gives a file the group of the one that it replaces, and its access control list if it has none
// of its own: whoever replaces a file by renaming means to change its content.
func (l *lander) takeOver(s step) error {
	if s.run.kind != regular || s.host.kind != regular || s.run.gid == s.host.gid && s.acl == nil {
		return nil
	}
	return l.upper.through(s.path, func(proc string) error {
		// Neither can be given by someone who is not in the group, or on every filesystem.
		if s.run.gid != s.host.gid {
			_ = unix.Chown(proc, -1, int(s.host.gid))
		}
		if s.acl != nil {
			_ = unix.Setxattr(proc, accessList, s.acl, 0)
		}
		// Both may have changed the mode, which stays the run's.
		return l.upper.fail("chmod", s.path, unix.Chmod(proc, s.run.landedMode()))
	})
}

// prune takes something out of a new directory without a trace in the directory's times.
func (l *lander) prune(path string) error {
	dir, err := l.upper.stat(parentPath(path))
	if err != nil {
		return err
	}
	if l.pruned == 0 {
		if err := unix.Mkdirat(l.t.layers.fd, "pruned", 0o700); err != nil {
			return l.t.layers.fail("mkdir", "pruned", err)
		}
	}
	l.pruned++
	err = l.move(l.upper, path, l.t.layers, "pruned/"+strconv.Itoa(l.pruned), unix.RENAME_NOREPLACE)
	if is(err, unix.ENOENT) {
		return nil // went with a directory that was pruned
	}
	if err != nil {
		return err
	}
	return l.upper.through(parentPath(path), func(proc string) error {
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, proc, dir.mtime.alone(), 0); err != nil {
			return l.upper.fail("set times of", parentPath(path), err)
		}
		return l.upper.fail("chmod", parentPath(path), unix.Chmod(proc, dir.mode))
	})
}
