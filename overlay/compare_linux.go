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

// compare compares two entries of one kind. Where it does not matter whether they differ in more than
// times and attributes, it does not tell.
func (c *collector) compare(e entry, matters bool) (sameness, error) {
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
		if !matters && e.run.mtime != e.host.mtime {
			return different, nil
		}
		return c.compareFiles(e)
	}
	return different, nil
}

func (c *collector) compareFiles(e entry) (sameness, error) {
	if e.run.size != e.host.size || e.run.landedMode() != e.host.mode && e.run.mode != e.host.mode {
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
	if equal, err := c.equalContent(ours, theirs, int64(e.run.size)); err != nil || !equal {
		return different, err
	}
	if e.run.mtime != e.host.mtime {
		return sameOutcome, nil
	}
	if equal, err := equalXattrs(ours.Fd(), theirs.Fd(), !e.marks.copied); err != nil || !equal {
		return sameOutcome, err
	}
	return unchanged, nil
}

// equalContent compares two files of one size chunk by chunk, so that memory does not grow with them. It
// reads no holes.
func (c *collector) equalContent(a, b *os.File, size int64) (bool, error) {
	chunk := min(128<<10, size+1)
	bufA, bufB := make([]byte, chunk), make([]byte, chunk)
	for at := int64(0); ; {
		if err := c.alive(); err != nil {
			return false, err
		}
		if size > chunk {
			at = min(dataFrom(a, at, size), dataFrom(b, at, size))
		}
		n, errA := a.ReadAt(bufA, at)
		m, errB := b.ReadAt(bufB, at)
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		switch {
		case errA != nil && errA != io.EOF:
			return false, errA
		case errB != nil && errB != io.EOF:
			return false, errB
		case errA != nil || errB != nil:
			return errA != nil && errB != nil, nil
		}
		at += int64(n)
		// A file may have ten thousand names: what is read is not bounded by what is stored.
		if c.compared += uint64(n); c.compared > compareLimit {
			return false, nil
		}
	}
}

// dataFrom returns where the first data at or after an offset may be, size if there is none.
func dataFrom(f *os.File, at, size int64) int64 {
	data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	switch err {
	case nil:
		return data
	case unix.ENXIO:
		return max(at, size)
	}
	return at // not a filesystem that says
}
