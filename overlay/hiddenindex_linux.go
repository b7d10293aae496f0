package overlay

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// hiddenIndex knows where in a workspace something is hidden. It remembers of each directory that a
// pattern can reach what it found there, and reads a directory again only if its ctime has moved: so a
// look costs a stat for each such directory, and the first one a reading of it. A file is never opened,
// and not looked at where the directory says of what kind it is.
//
// It does not go into what is hidden, through links, or into other mounts.
type hiddenIndex struct {
	hidden  Hidden
	host    *tree
	trusted bool   // ctimes of the workspace's filesystem can be trusted
	own     string // a directory of ours in the root, where there is nothing to look for; "" if there is none
	root    knownDir
}

// knownDir is a directory that a pattern can reach, as it was when it was read.
type knownDir struct {
	name     string
	progress progress
	all      bool // everything in it is hidden; it is never read

	dev, ino uint64
	ctime    stamp
	settled  bool // a change after it was read has another ctime
	closed   bool // it can't be read, and so not be searched: it is hidden as a whole
	hidden   []string
	dirs     []*knownDir
}

// hidingDir is a directory that hides something, or leads to one that does.
type hidingDir struct {
	path   string
	inode  inode
	all    bool
	hidden []string
}

func newHiddenIndex(h Hidden, host *tree, trusted bool) *hiddenIndex {
	return &hiddenIndex{hidden: h, host: host, trusted: trusted, root: knownDir{progress: h.begin()}}
}

// look returns the directories that hide something as they are now, each before those in it. now is a
// moment that has passed, by the workspace's clock.
func (x *hiddenIndex) look(now stamp) ([]hidingDir, error) {
	root, err := statAt(x.host.fd, "")
	if err != nil {
		return nil, err
	}
	l := looking{x: x, now: now}
	if _, err := l.dir(&x.root, "", root); err != nil {
		return nil, err
	}
	return l.found, nil
}

// looking is one look.
type looking struct {
	x     *hiddenIndex
	now   stamp
	found []hidingDir
}

// dir looks at a directory. It reports false for one that has gone.
func (l *looking) dir(d *knownDir, path string, i inode) (there bool, err error) {
	at := len(l.found)
	l.found = append(l.found, hidingDir{path: path, all: d.all})
	if !d.all {
		if !l.x.trusted || !d.settled || d.ino != i.ino || d.dev != i.dev || d.ctime != i.ctime {
			if i, there, err = l.read(d, path); err != nil || !there {
				l.found = l.found[:at]
				return false, err
			}
		}
		l.found[at].hidden = d.hidden
		for _, sub := range d.dirs {
			below := joinPath(path, sub.name)
			// By its path: if that leads through a link by now, the directory above has changed, and what is
			// seen here is at worst something that the next look corrects.
			i, err := statAt(l.x.host.fd, below)
			if is(err, unix.ENAMETOOLONG) {
				// Names lead there step by step, which this walk does not follow.
				l.found[at].hidden = append(slices.Clip(l.found[at].hidden), sub.name)
				continue
			}
			if is(err, unix.ELOOP, unix.ENOTDIR, unix.EACCES) || err == nil && (i.kind != directory || i.mounted) {
				continue
			}
			if err != nil {
				return false, err
			}
			if _, err := l.dir(sub, below, i); err != nil {
				return false, err
			}
			if sub.closed {
				l.found[at].hidden = append(slices.Clip(l.found[at].hidden), sub.name)
			}
		}
	}
	l.found[at].inode = i
	if path != "" && len(l.found) == at+1 && !d.all && len(l.found[at].hidden) == 0 {
		l.found = l.found[:at] // nothing is hidden there
	}
	return true, nil
}

// read reads a directory anew.
func (l *looking) read(d *knownDir, path string) (i inode, there bool, err error) {
	d.settled, d.closed, d.hidden = false, false, nil
	known := map[string]*knownDir{}
	for _, sub := range d.dirs {
		known[sub.name] = sub
	}
	d.dirs = nil
	fd, err := l.x.host.open(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if is(err, unix.EACCES) {
		d.closed = true
		return inode{}, false, nil
	}
	if is(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV) {
		return inode{}, false, nil
	}
	if err != nil {
		return inode{}, false, err
	}
	f := os.NewFile(uintptr(fd), filepath.Join(l.x.host.path, path))
	defer f.Close()
	if i, err = statAt(fd, ""); err != nil {
		return inode{}, false, err
	}
	h := l.x.hidden
	take := func(name string, k kind) {
		if path == "" && name == l.x.own {
			return
		}
		hidden, in := h.enter(d.progress, name, k == directory)
		switch {
		case hidden:
			d.hidden = append(d.hidden, name)
		case k == directory && in != nil:
			sub := known[name]
			if sub == nil {
				sub = &knownDir{name: name, progress: in, all: h.hidesAll(in)}
			}
			d.dirs = append(d.dirs, sub)
		}
	}
	names, all := h.wanted(d.progress)
	for name, here := range names {
		i, err := statAt(fd, name)
		if err != nil {
			return inode{}, false, err
		}
		if i.kind == absent && path != "" && !here {
			continue // else every directory would have to hide it
		}
		if i.kind == absent {
			// What someone makes there while a run goes on is hidden as well. It could be either.
			if hidden, _ := h.enter(d.progress, name, false); !hidden {
				i.kind = directory
			}
			if hidden, _ := h.enter(d.progress, name, true); !hidden {
				continue
			}
		}
		take(name, i.kind)
	}
	if all {
		if err := eachName(f, func(name string, k kind) {
			if _, taken := names[name]; !taken {
				take(name, k)
			}
		}); err != nil {
			return inode{}, false, err
		}
	}
	slices.Sort(d.hidden)
	slices.SortFunc(d.dirs, func(a, b *knownDir) int { return strings.Compare(a.name, b.name) })
	d.dev, d.ino, d.ctime, d.settled = i.dev, i.ino, i.ctime, i.ctime.before(l.now)
	return i, true, nil
}

// eachName calls f for each name in an open directory, in no order.
func eachName(dir *os.File, f func(name string, k kind)) error {
	for {
		entries, err := dir.ReadDir(1024)
		for _, e := range entries {
			switch {
			case e.IsDir():
				f(e.Name(), directory)
			case e.Type()&fs.ModeSymlink != 0:
				f(e.Name(), symlink)
			default:
				f(e.Name(), regular)
			}
		}
		if errors.Is(err, io.EOF) || err == nil && len(entries) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
