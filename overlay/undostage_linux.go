package overlay

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// stage brings what comes back into the directory of the landing. It is linked, not moved: until the
// landing is done the history has it all, whatever happens.
func (u *undoing) stage(ctx context.Context, l *lander) error {
	directories := false
	for i := range l.steps {
		s := &l.steps[i]
		if !s.puts() {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		source := u.sources[s.path]
		if source == nil {
			return fmt.Errorf("bug: nothing to put at %s", Quote(s.path))
		}
		if err := u.bring(ctx, source, l, s.name()); err != nil {
			return fmt.Errorf("%s: %w", Quote(s.path), err)
		}
		var err error
		if s.run, err = l.landing.stat(s.name()); err != nil {
			return err
		}
		if err := u.w.syncTree(l.landing, s.name()); err != nil {
			return err
		}
		directories = directories || s.run.kind == directory
	}
	return l.staged(ctx, directories)
}

// bring makes what comes back, at a path of the landing.
func (u *undoing) bring(ctx context.Context, r *restored, l *lander, path string) error {
	to := l.landing
	if r.kind != removeDir {
		to.point()
		var refused error
		err := to.parent(path, func(fd int, name string) error {
			refused = unix.Linkat(u.kept.fd, r.name(), fd, name, 0)
			return refused
		})
		if is(refused, unix.EPERM, unix.EMLINK) {
			return u.bringCopy(ctx, r, l, path)
		}
		return u.kept.fail("link", r.name(), err)
	}
	to.point()
	err := to.parent(path, func(fd int, name string) error { return unix.Mkdirat(fd, name, 0o700) })
	if err != nil {
		return to.fail("mkdir", path, err)
	}
	for _, b := range r.below {
		if err := u.bring(ctx, b, l, joinPath(path, baseName(b.path))); err != nil {
			return err
		}
	}
	return to.setAttributes(path, r.host, r.attrs)
}

// bringCopy is bring for what can't be linked: a file of another user's that this one may not write (fs.protected_hardlinks), or one
// that has too many names.
func (u *undoing) bringCopy(ctx context.Context, r *restored, l *lander, path string) error {
	source, err := u.kept.stat(r.name())
	if err != nil {
		return err
	}
	c := copier{ctx: ctx, from: u.kept, to: l.landing}
	err = unix.EPERM // of FIFOs, sockets and devices, which have no copies
	if source.kind == regular || source.kind == symlink {
		err = c.entry(r.name(), path, source)
	}
	if is(err, unix.EACCES, unix.EPERM) {
		return fmt.Errorf("it is another user's, may be neither linked (fs.protected_hardlinks) nor copied, and is kept at %s: %w",
			Quote(u.kept.path+"/"+r.name()), err)
	}
	if err != nil {
		return err
	}
	made, err := l.landing.stat(path)
	if err == nil && made.uid != source.uid {
		l.report.Notes = append(l.report.Notes, fmt.Sprintf("%s was another user's, and is a copy of your own now.", Quote(r.path)))
	}
	return err
}
