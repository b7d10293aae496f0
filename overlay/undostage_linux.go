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
		if err := u.bring(source, l.landing, s.name()); err != nil {
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
func (u *undoing) bring(r *restored, to *tree, path string) error {
	if r.kind != removeDir {
		to.point()
		err := to.parent(path, func(fd int, name string) error {
			return unix.Linkat(u.kept.fd, r.name(), fd, name, 0)
		})
		return u.kept.fail("link", r.name(), err)
	}
	to.point()
	err := to.parent(path, func(fd int, name string) error { return unix.Mkdirat(fd, name, 0o700) })
	if err != nil {
		return to.fail("mkdir", path, err)
	}
	for _, b := range r.below {
		if err := u.bring(b, to, joinPath(path, baseName(b.path))); err != nil {
			return err
		}
	}
	return to.setAttributes(path, r.host, r.attrs)
}
