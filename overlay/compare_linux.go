package overlay

import (
	"bytes"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// sameness is how an entry of the layer compares with what the workspace has at its path.
type sameness uint8

const (
	different   sameness = iota
	sameOutcome          // kind, content and mode are equal: whoever wrote it, nothing is lost
	unchanged            // times and attributes are, too: a copy that the run did not change
)

// compareLimit is how much content one walk compares, in bytes. Beyond it everything counts as different,
// which is the safe side: it lands as a change, or is a conflict.
const compareLimit = 16 << 30

// compare compares two entries of one kind.
func (c *collector) compare(e entry) (sameness, error) {
	switch e.run.kind {
	case symlink:
		ours, err := c.upper.readlink(e.path)
		if err != nil {
			return different, err
		}
		theirs, err := c.host.readlink(e.path)
		if err != nil || ours != theirs {
			return different, nil // a link that is gone differs
		}
		return unchanged, nil
	case regular:
		return c.compareFiles(e)
	}
	return different, nil
}

func (c *collector) compareFiles(e entry) (sameness, error) {
	if e.run.size != e.host.size || e.run.landedMode() != e.host.mode && e.run.mode != e.host.mode {
		return different, nil
	}
	// A file may be all hole, or have ten thousand names: what is read is not bounded by what is stored.
	if c.compared += e.run.size; c.compared > compareLimit {
		return different, nil
	}
	ours, err := c.upper.file(e.path)
	if err != nil {
		return different, err
	}
	defer ours.Close()
	theirs, err := c.host.file(e.path)
	if is(err, unix.EACCES, unix.ENOENT, unix.ELOOP, unix.EXDEV) {
		return different, nil // what we can't read is not ours to call equal
	}
	if err != nil {
		return different, err
	}
	defer theirs.Close()
	if opened, err := statAt(int(theirs.Fd()), ""); err != nil || !opened.same(e.host) {
		return different, err
	}
	if equal, err := equalContent(c.alive, ours, theirs, e.run.size); err != nil || !equal {
		return different, err
	}
	if e.run.mtime != e.host.mtime {
		return sameOutcome, nil
	}
	if equal, err := equalXattrs(ours.Fd(), theirs.Fd()); err != nil || !equal {
		return sameOutcome, err
	}
	return unchanged, nil
}

// equalContent compares two files chunk by chunk, so that memory does not grow with them.
func equalContent(alive func() error, a, b *os.File, size uint64) (bool, error) {
	chunk := min(64<<10, size+1)
	bufA, bufB := make([]byte, chunk), make([]byte, chunk)
	for {
		if err := alive(); err != nil {
			return false, err
		}
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		endA, endB := ended(errA), ended(errB)
		switch {
		case errA != nil && !endA:
			return false, errA
		case errB != nil && !endB:
			return false, errB
		case endA || endB:
			return endA && endB, nil
		}
	}
}

func ended(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }
