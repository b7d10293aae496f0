package overlay

import (
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"airlock/internal/gitconfig"
)

// tip is what a ref of the run led to.
type tip struct {
	ref    string // without "refs/"; "HEAD" for a detached one
	object string
}

// maxTips bounds how many refs are kept for one run, and maxRefFile the files that they are read from.
const (
	maxTips    = 1000
	maxRefFile = 16 << 20
)

// tips lists what the refs that the run wrote lead to, where the workspace's lead elsewhere.
func (u *gitUnit) tips() ([]tip, error) {
	wrote := map[string]string{}
	if err := u.looseRefs("refs", wrote); err != nil {
		return nil, err
	}
	packed, err := u.text(u.c.upper, "packed-refs")
	if err != nil {
		return nil, err
	}
	packedByRun, _ := packedRefs(packed)
	for name, object := range packedByRun {
		if _, loose := wrote[name]; !loose && strings.HasPrefix(name, "refs/") {
			wrote[name] = object
		}
	}
	headFile := "HEAD"
	if shared := u.c.filter.shared; shared != nil {
		headFile = "worktrees/" + shared.worktree + "/HEAD" // the other is the main worktree's
	}
	head, err := u.text(u.c.upper, headFile)
	if err != nil {
		return nil, err
	}
	if object := directRef(head); object != "" {
		wrote[headFile] = object
	}
	hostPacked := map[string]string{}
	if len(wrote) > 0 {
		text, err := u.text(u.c.host, "packed-refs")
		if err != nil {
			return nil, err
		}
		hostPacked, _ = packedRefs(text)
	}
	var tips []tip
	for name, object := range wrote {
		text, err := u.text(u.c.host, name)
		if err != nil {
			return nil, err
		}
		if now := directRef(text); now == object || text == "" && hostPacked[name] == object {
			continue
		}
		// A ref that the run did not move, and someone else did: the reflog knows where it was.
		log, err := u.text(u.c.host, "logs/"+name)
		if err != nil {
			return nil, err
		}
		if strings.Contains(log, object) {
			continue
		}
		ref := strings.TrimPrefix(name, "refs/")
		if name == headFile {
			ref = "HEAD"
		}
		tips = append(tips, tip{ref, object})
	}
	tips = slices.DeleteFunc(tips, func(t tip) bool {
		// Only a forged layer has a ref beside refs below it.
		return slices.ContainsFunc(tips, func(other tip) bool { return strings.HasPrefix(other.ref, t.ref+"/") })
	})
	slices.SortFunc(tips, func(a, b tip) int { return strings.Compare(a.ref, b.ref) })
	return tips[:min(len(tips), maxTips)], nil
}

// looseRefs collects the refs that the layer has as files below a directory.
func (u *gitUnit) looseRefs(dir string, refs map[string]string) error {
	if len(refs) > maxTips || strings.Count(dir, "/") > 64 {
		return nil
	}
	i, err := u.c.upper.stat(u.below(dir))
	if err != nil || i.kind != directory {
		return err
	}
	names, err := u.c.upper.list(u.below(dir))
	if err != nil {
		return err
	}
	for _, name := range names {
		ref := joinPath(dir, name)
		i, err := u.c.upper.stat(u.below(ref))
		switch {
		case err != nil:
			return err
		case i.kind == directory:
			if err := u.looseRefs(ref, refs); err != nil {
				return err
			}
		case i.kind == regular && gitconfig.ValidRef(ref):
			text, err := u.text(u.c.upper, ref)
			if err != nil {
				return err
			}
			if object := directRef(text); object != "" {
				refs[ref] = object
			}
		}
	}
	return nil
}

// text reads a small file of the git directory; what is missing, or no file, is empty.
func (u *gitUnit) text(t *tree, rel string) (string, error) {
	i, err := t.stat(u.below(rel))
	if err != nil || i.kind != regular || i.size > maxRefFile {
		return "", err
	}
	f, err := t.file(u.below(rel))
	if is(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES, unix.EXDEV) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRefFile))
	return string(text), t.fail("read", u.below(rel), err)
}

// keepTips adds a change that makes a ref of each tip, and returns their names.
func (u *gitUnit) keepTips(tips []tip) (names []string, err error) {
	if len(tips) == 0 {
		return nil, nil
	}
	refs, err := u.c.host.stat(u.below("refs"))
	if err != nil || refs.kind != directory {
		return nil, err
	}
	ours, err := u.c.host.stat(u.below("refs/airlock"))
	if err != nil {
		return nil, err
	}
	// The change is one directory that is new: refs/airlock/RUN, or refs/airlock with that in it.
	dir, prefix := "refs/airlock/"+u.c.run, ""
	switch ours.kind {
	case absent:
		dir, prefix = "refs/airlock", u.c.run+"/"
	case directory:
	default:
		dir = "refs/airlock-" + u.c.run // someone has a ref of that name
	}
	ch := change{kind: put, path: u.below(dir), unit: u.name, run: inode{kind: directory}}
	for _, t := range tips {
		ch.tips = append(ch.tips, tip{prefix + t.ref, t.object})
		ch.added = append(ch.added, u.below(dir+"/"+prefix+t.ref))
		names = append(names, dir+"/"+prefix+t.ref)
	}
	u.changes = append(u.changes, ch)
	return names, nil
}

// stageTips makes the directory of refs that a step puts, owned and open as the one that it comes to.
func (l *lander) stageTips(s step) error {
	parent, err := l.host.stat(parentPath(s.path))
	if err != nil {
		return err
	}
	mode := parent.mode&0o2775 | 0o700
	own := func(fd int, mode uint32) error {
		if rootRights() {
			if err := unix.Fchown(fd, int(parent.uid), int(parent.gid)); err != nil {
				return err
			}
		} else {
			_ = unix.Fchown(fd, -1, int(parent.gid)) // a group that we are not in can't be given
		}
		return unix.Fchmod(fd, mode)
	}
	made := map[string]bool{}
	mkdir := func(path string) error {
		if made[path] {
			return nil
		}
		made[path] = true
		dir, err := l.landing.mkdir(path, 0o700)
		if err != nil {
			return err
		}
		defer dir.close()
		return l.landing.fail("prepare", path, own(dir.fd, mode))
	}
	if err := mkdir(s.name()); err != nil {
		return err
	}
	for _, t := range s.tips {
		at := s.name()
		names := strings.Split(t.ref, "/")
		for _, name := range names[:len(names)-1] {
			at = joinPath(at, name)
			if err := mkdir(at); err != nil {
				return err
			}
		}
		path := joinPath(at, names[len(names)-1])
		f, err := l.landing.create(path)
		if err != nil {
			return err
		}
		_, err = f.WriteString(t.object + "\n")
		err = errors.Join(err, own(int(f.Fd()), mode&0o664|0o600), f.Close())
		if err != nil {
			return l.landing.fail("write", path, err)
		}
	}
	return nil
}
