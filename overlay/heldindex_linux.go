package overlay

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// heldIndex knows which paths of a workspace exist that a run must not write. As a [hiddenIndex] does, it
// remembers of each directory what it found there and reads one again only if its ctime has moved, so that
// a look costs a stat for each directory, and the first one a reading of it. It does not go through links,
// nor into what is held or mounted.
type heldIndex struct {
	filter  filter // without what git's configuration adds
	host    *tree
	gitUser GitUser
	trusted bool // ctimes of the workspace's filesystem can be trusted

	targets map[string]bool // the patterns that git's configuration added when root was read
	root    knownHolds
}

// knownHolds is a directory as it was when it was read.
type knownHolds struct {
	name     string
	read     bool
	dev, ino uint64
	ctime    stamp
	settled  bool // a change after it was read has another ctime

	above      []string // the git directories above it
	gits       []string // and it, if it is one
	repository bool     // git would find configuration here
	held       []string // names that are read-only as a whole
	links      []string // protected names that are links
	ours       []string // names of airlock's own
	dirs       []*knownHolds
}

// heldPaths is what a look found.
type heldPaths struct {
	readOnly, links, ours []string
	repositories          []string
}

// longestHeld is the longest absolute path that is looked at, in bytes, and deepestHeld the most names of one
// in the workspace. A run can nest directories deeper than a path can name, and each that something is held
// in takes a mount: from there on down all is read-only.
const (
	longestHeld = 2048
	deepestHeld = 128
)

// look finds what is to be held now. now is a moment that has passed, by the workspace's clock.
func (x *heldIndex) look(ctx context.Context, now stamp) (heldPaths, error) {
	for range 5 {
		rules := &collector{host: x.host, filter: x.filter, gitUser: x.gitUser, targets: map[string]bool{}}
		for pattern := range x.targets {
			rules.targets[pattern] = true
			_ = rules.filter.add(pattern)
		}
		l := heldLook{ctx: ctx, x: x, filter: rules.filter, now: now}
		root, err := statAt(x.host.fd, "")
		if err != nil {
			return heldPaths{}, err
		}
		if err := l.dir(&x.root, "", root, nil); err != nil {
			return heldPaths{}, err
		}
		// What git's configuration sends it to can be changed by a file anywhere. If it is something else
		// than the directories were read by, they are read once more.
		rules.filter, rules.targets = x.filter, nil
		rules.obeyed()
		for _, path := range l.found.repositories {
			rules.obeyedBy(path)
		}
		if maps.Equal(rules.targets, x.targets) {
			return l.found, nil
		}
		x.targets, x.root = rules.targets, knownHolds{}
	}
	return heldPaths{}, errors.New("git's configuration in the workspace does not stay what it is for as long as it takes to read it")
}

// heldLook is one look.
type heldLook struct {
	ctx    context.Context
	x      *heldIndex
	filter filter
	now    stamp
	found  heldPaths
}

func (l *heldLook) dir(d *knownHolds, path string, i inode, gits []string) error {
	if err := context.Cause(l.ctx); err != nil {
		return err
	}
	if !d.read || !l.x.trusted || !d.settled || d.ino != i.ino || d.dev != i.dev || d.ctime != i.ctime || !slices.Equal(d.above, gits) {
		closed, err := l.read(d, path, gits)
		if err != nil {
			return err
		}
		if closed {
			l.found.readOnly = append(l.found.readOnly, path)
			return nil
		}
	}
	for _, list := range []struct {
		names []string
		to    *[]string
	}{{d.held, &l.found.readOnly}, {d.links, &l.found.links}, {d.ours, &l.found.ours}} {
		for _, name := range list.names {
			*list.to = append(*list.to, joinPath(path, name))
		}
	}
	if d.repository {
		l.found.repositories = append(l.found.repositories, path)
	}
	for _, sub := range d.dirs {
		below := joinPath(path, sub.name)
		if len(l.x.host.path)+len(below) > longestHeld || strings.Count(below, "/") >= deepestHeld {
			l.found.readOnly = append(l.found.readOnly, below)
			continue
		}
		i, err := statAt(l.x.host.fd, below)
		if is(err, unix.EACCES) {
			continue // the directory above is closed, and read-only
		}
		if is(err, unix.ELOOP, unix.ENOTDIR) || err == nil && i.kind != directory {
			continue // it has just gone
		}
		if err != nil {
			return err
		}
		if i.mounted {
			continue // what is mounted there is held as a whole, see Hold
		}
		if err := l.dir(sub, below, i, d.gits); err != nil {
			return err
		}
	}
	return nil
}

// read reads a directory anew. closed says that it can't be: its owner, the run, could open it again.
func (l *heldLook) read(d *knownHolds, path string, gits []string) (closed bool, err error) {
	known := map[string]*knownHolds{}
	for _, sub := range d.dirs {
		known[sub.name] = sub
	}
	*d = knownHolds{name: d.name}
	fd, err := l.x.host.open(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if is(err, unix.EACCES) {
		return true, nil
	}
	if is(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	f := os.NewFile(uintptr(fd), filepath.Join(l.x.host.path, path))
	defer f.Close()
	i, err := statAt(fd, "")
	if err != nil {
		return false, err
	}
	has := func(name string) bool {
		i, err := statAt(fd, name)
		return err != nil || i.kind != absent
	}
	if _, err := statAt(fd, "."); is(err, unix.EACCES) {
		return true, nil // it can be read, but not searched
	}
	name := d.name
	if path == "" {
		name = filepath.Base(l.x.host.path)
	}
	d.above, d.gits = gits, gits
	if isGitDir(name, has) {
		d.gits = append(slices.Clip(gits), path)
	}
	d.repository = path != "" && (has(".git") || has("HEAD") && has("config"))
	err = eachName(f, func(name string, k kind) {
		below := joinPath(path, name)
		switch {
		case reserved(name) && k != symlink: // none of ours is a link
			d.ours = append(d.ours, name)
		case !l.filter.holds(below, k, d.gits):
			if k == directory {
				sub := known[name]
				if sub == nil {
					sub = &knownHolds{name: name}
				}
				d.dirs = append(d.dirs, sub)
			}
		case k == symlink:
			d.links = append(d.links, name)
		default:
			d.held = append(d.held, name)
		}
	})
	if err != nil {
		return false, err
	}
	d.read, d.dev, d.ino, d.ctime, d.settled = true, i.dev, i.ino, i.ctime, i.ctime.before(l.now)
	return false, nil
}

// holds reports whether a path is to be read-only, with all that is in it.
func (f filter) holds(path string, k kind, gits []string) bool {
	if f.protected(path, k, gits) {
		return true
	}
	// A directory in which any name is protected, as by "dir/**".
	return k == directory && f.protected(joinPath(path, "\x01\x02"), regular, gits) && f.protected(joinPath(path, "\x7f"), regular, gits)
}
