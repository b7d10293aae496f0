package overlay

import (
	"context"
	"fmt"
	"strings"

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

// setAttributes gives a directory that was made anew what its predecessor had.
func (t *tree) setAttributes(path string, was inode, attrs map[string][]byte) error {
	return t.through(path, func(proc string) error {
		t.point()
		if rootRights() {
			if err := unix.Chown(proc, int(was.uid), int(was.gid)); err != nil {
				return t.fail("chown", path, err)
			}
		} else {
			_ = unix.Chown(proc, -1, int(was.gid)) // a group that we are not in can't be given
		}
		for name, value := range attrs {
			if err := unix.Setxattr(proc, name, value, 0); err != nil {
				return t.fail("set attribute of", path, err)
			}
		}
		if err := unix.Chmod(proc, was.mode); err != nil {
			return t.fail("chmod", path, err)
		}
		return t.fail("set times of", path, unix.UtimesNanoAt(unix.AT_FDCWD, proc, was.mtime.alone(), 0))
	})
}

// attributes are those of a directory that setAttributes can give another: the user's own, and access
// control lists.
func (t *tree) attributes(path string) (attrs map[string][]byte, err error) {
	err = t.through(path, func(proc string) error {
		names, err := xattrNames(proc, unix.Listxattr)
		if err != nil {
			return t.fail("list attributes of", path, err)
		}
		for _, name := range names {
			if !travels(name) {
				continue
			}
			value, err := xattrValue(proc, name, unix.Getxattr)
			if is(err, unix.EACCES) {
				continue
			}
			if err != nil {
				return t.fail("read attribute of", path, err)
			}
			if attrs == nil {
				attrs = map[string][]byte{}
			}
			attrs[name] = value
		}
		return nil
	})
	return attrs, err
}

// travels reports whether an attribute is one that a directory of ours can be given.
func travels(name string) bool {
	return strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_")
}

// refresh notes anew what the landing of an undo put, or of a run that waited: dropping the other names
// that it had in the history, or in the layer that waited, moved its ctimes.
func (l *lander) refresh(r record, base *tree) error {
	m, err := takeMarker(context.Background(), base)
	if err != nil {
		return err
	}
	h, err := openHistory(base)
	if h == nil {
		return err
	}
	defer h.close()
	e, ok := parseEntry(r.Entry)
	if !ok {
		return nil
	}
	entry, err := h.readEntry(e)
	if err != nil {
		return err
	}
	for i, s := range entry.Steps {
		if s.Landed == nil {
			continue
		}
		then, err := s.Landed.inode()
		if err != nil {
			return err
		}
		now, err := l.host.stat(string(s.Path))
		if err == nil && now.same(then) {
			entry.Steps[i].Landed = recordInode(now)
		}
	}
	if entry.Marker != nil && (!r.Waited || l.asPut()) {
		entry.Marker = &recordedStamp{m.at.sec, m.at.nsec}
	}
	text, err := entry.encode()
	if err != nil {
		return err
	}
	const beside = entryName + ".new"
	if err := l.landing.write(beside, text, l.w.config.Durable); err != nil {
		return err
	}
	l.landing.point()
	return l.landing.fail("rename", beside, unix.Renameat(l.landing.fd, beside, l.landing.fd, entryName))
}
