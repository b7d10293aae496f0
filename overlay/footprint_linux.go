package overlay

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A directory's ctime moves whenever a name in it comes or goes, so also by our own landings. For a
// run that overlapped with one, such a directory would look as if it could have been swapped for
// another (see collector.swapped). Every landing therefore leaves its footprints in the state
// directory: the ctimes of each directory that it changed, right before and right after. Reading them
// backwards gives the ctime that the directory would have without us, and where someone else's change came
// between two of ours, that one.
//
// So has a file with several names, one of which was replaced or removed: the others are what they were.
// Any other file that another run landed meanwhile is a conflict.
//
// Where a landing took a name away nothing is left that could have a ctime, and a run that changed what was there, and
// began before, must not bring it back. So the names that a landing took away are kept there, too.

// footprint is one directory, or file with several names, whose ctime one landing moved, once or several times
// with nothing in between.
type footprint struct {
	ino           uint64
	before, after stamp
}

// removal is a name that a landing took away, and the ctime that the directory had by then.
type removal struct {
	path string // "" stands for any: there were more than are known
	at   stamp
}

// footprints are what is known of the landings in a workspace, the oldest first.
type footprints struct {
	moved   []footprint
	removed []removal
}

// footprintLimit bounds the file, in bytes. What is forgotten makes a swap look possible where there was none, which
// is the safe side; that names were forgotten is noted.
const footprintLimit = 1 << 20

func footprintPath(state string) string { return filepath.Join(state, "landings") }

// The file has a line for each: "INODE BEFORE AFTER." of a footprint, and "- AT NAME." of a removal, with the name
// quoted as Go does it.

// readFootprints returns the known ones; the lock on the workspace is held.
func readFootprints(state string) (known footprints, err error) {
	f, err := os.Open(footprintPath(state))
	if os.IsNotExist(err) {
		return footprints{}, nil
	}
	if err != nil {
		return footprints{}, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, whole := strings.CutSuffix(lines.Text(), ".")
		if !whole {
			continue // it was cut off by a crash, and is forgotten
		}
		var p footprint
		var r removal
		if n, _ := fmt.Sscanf(line, "%d %d.%d %d.%d", &p.ino, &p.before.sec, &p.before.nsec, &p.after.sec, &p.after.nsec); n == 5 {
			known.moved = append(known.moved, p)
		} else if n, _ := fmt.Sscanf(line, "- %d.%d %q", &r.at.sec, &r.at.nsec, &r.path); n == 3 {
			known.removed = append(known.removed, r)
		}
	}
	return known, nil
}

// addFootprints appends; the lock on the workspace is held.
func addFootprints(state string, add footprints) error {
	if len(add.moved) == 0 && len(add.removed) == 0 {
		return nil
	}
	f, err := os.OpenFile(footprintPath(state), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size > footprintLimit {
		if add.removed, err = forgotten(state, add.removed); err != nil {
			return err
		}
		if err := f.Truncate(0); err != nil {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	w := bufio.NewWriter(f)
	for _, p := range add.moved {
		fmt.Fprintf(w, "%d %d.%d %d.%d.\n", p.ino, p.before.sec, p.before.nsec, p.after.sec, p.after.nsec)
	}
	for _, r := range add.removed {
		fmt.Fprintf(w, "- %d.%d %q.\n", r.at.sec, r.at.nsec, r.path)
	}
	return w.Flush()
}

// forgotten puts before the removals one that stands for all that are in the file.
func forgotten(state string, add []removal) ([]removal, error) {
	known, err := readFootprints(state)
	if err != nil || len(known.removed) == 0 {
		return add, err
	}
	latest := known.removed[0].at
	for _, r := range known.removed {
		if latest.before(r.at) {
			latest = r.at
		}
	}
	return append([]removal{{at: latest}}, add...), nil
}

// tread makes a change in a directory of the workspace and keeps the footprint that it leaves.
func (l *lander) tread(path string, change func() error) error {
	before, err := l.host.stat(path)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	l.host.point()
	// By its path: if someone swapped it for another just now, that is another inode, and no footprint hides it.
	after, err := l.host.stat(path)
	if err == nil && before.kind == directory { // without a footprint more looks touched than is
		l.print(before, after)
	}
	return nil
}

// leftUnder keeps the footprint of a file that left the workspace under one name, and stays there if it has
// others.
func (l *lander) leftUnder(before, after inode) {
	if before.links > 1 && before.kind == regular {
		l.print(before, after)
	}
}

func (l *lander) print(before, after inode) {
	if before.ctime == after.ctime || before.ino != after.ino {
		return
	}
	if i, known := l.lastPrint[after.ino]; known && l.prints.moved[i].after == before.ctime {
		l.prints.moved[i].after = after.ctime
		return
	}
	l.lastPrint[after.ino] = len(l.prints.moved)
	l.prints.moved = append(l.prints.moved, footprint{ino: after.ino, before: before.ctime, after: after.ctime})
}

// tookAway keeps that a name is gone from the workspace.
func (l *lander) tookAway(path string) {
	dir, err := l.host.stat(parentPath(path))
	if err != nil || dir.kind != directory {
		return // the directory went as well, which is seen by itself
	}
	l.prints.removed = append(l.prints.removed, removal{path, dir.ctime})
}

// leaveFootprints writes them down. Without footprints more looks touched than is, so an error is no reason
// for a landing to fail.
func (l *lander) leaveFootprints() {
	_ = addFootprints(l.w.state, l.prints)
	l.prints = footprints{}
	clear(l.lastPrint)
}

// ownPrints are the footprints of a workspace's landings, read once they are needed.
type ownPrints struct {
	state string
	read  bool
	known footprints
}

func (p *ownPrints) all() footprints {
	if !p.read {
		// Without footprints more looks touched than is, so an error does no harm.
		p.known, _ = readFootprints(p.state)
		p.read = true
	}
	return p.known
}

// moved returns the footprints of inodes, the oldest first.
func (p *ownPrints) moved() []footprint { return p.all().moved }

// removed reports whether a landing took a name away since a moment, and whether it may have and nobody knows.
func (p *ownPrints) removed(path string, since stamp) (was, perhaps bool) {
	for _, r := range p.all().removed {
		if r.at.before(since) {
			continue
		}
		was = was || r.path == path
		perhaps = perhaps || r.path == ""
	}
	return was, perhaps
}

// without returns the ctime that an inode would have if no landing had changed it.
func (p *ownPrints) without(i inode) stamp {
	c := i.ctime
	for _, print := range slices.Backward(p.moved()) {
		if print.ino == i.ino && print.after == c {
			c = print.before
		}
	}
	return c
}
