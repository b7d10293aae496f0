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

// footprint is one directory, or file with several names, whose ctime one landing moved, once or several times
// with nothing in between.
type footprint struct {
	ino           uint64
	before, after stamp
}

// footprintLimit bounds the file. What is forgotten makes a swap look possible where there was none,
// which is the safe side.
const footprintLimit = 256 << 10

func footprintPath(state string) string { return filepath.Join(state, "landings") }

// readFootprints returns the known ones; the lock on the workspace is held.
func readFootprints(state string) ([]footprint, error) {
	f, err := os.Open(footprintPath(state))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var prints []footprint
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var p footprint
		// A line that was cut off by a crash is one that is forgotten.
		if n, _ := fmt.Sscanf(lines.Text(), "%d %d.%d %d.%d.", &p.ino,
			&p.before.sec, &p.before.nsec, &p.after.sec, &p.after.nsec); n == 5 && strings.HasSuffix(lines.Text(), ".") {
			prints = append(prints, p)
		}
	}
	return prints, nil
}

// addFootprints appends; the lock on the workspace is held.
func addFootprints(state string, prints []footprint) error {
	if len(prints) == 0 {
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
		if err := f.Truncate(0); err != nil {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	w := bufio.NewWriter(f)
	for _, p := range prints {
		fmt.Fprintf(w, "%d %d.%d %d.%d.\n", p.ino, p.before.sec, p.before.nsec, p.after.sec, p.after.nsec)
	}
	return w.Flush()
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
	if i, known := l.lastPrint[after.ino]; known && l.prints[i].after == before.ctime {
		l.prints[i].after = after.ctime
		return
	}
	l.lastPrint[after.ino] = len(l.prints)
	l.prints = append(l.prints, footprint{ino: after.ino, before: before.ctime, after: after.ctime})
}

// leaveFootprints writes them down. Without footprints more looks touched than is, so an error is no reason
// for a landing to fail.
func (l *lander) leaveFootprints() {
	_ = addFootprints(l.w.state, l.prints)
	l.prints = nil
	clear(l.lastPrint)
}

// ownPrints are the footprints of a workspace's landings, read once they are needed.
type ownPrints struct {
	state string
	read  bool
	known []footprint
}

// all returns them, the oldest first.
func (p *ownPrints) all() []footprint {
	if !p.read {
		// Without footprints more looks touched than is, so an error does no harm.
		p.known, _ = readFootprints(p.state)
		p.read = true
	}
	return p.known
}

// without returns the ctime that an inode would have if no landing had changed it.
func (p *ownPrints) without(i inode) stamp {
	c := i.ctime
	for _, print := range slices.Backward(p.all()) {
		if print.ino == i.ino && print.after == c {
			c = print.before
		}
	}
	return c
}
