package overlay

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A rename moves the ctime of what it renames. What it moved it to is written down right afterwards, in
// a file in the directory of the landing: so that whoever takes the landing back, perhaps after the
// death of this process, can tell a file that was edited since, whatever size and mtime it has.
//
// A process can die between the two. But the same rename moved the ctime of the directory of the landing,
// where nobody else changes anything: an edit that came after the death has a later one.

// stampsName is that file.
const stampsName = "stamps"

// stampSize is the size of what it has for one step, so that none crosses a page, and a process that
// is killed writes it whole or not at all: the step's index, the ctime, and a sum of both. The last one
// of a step holds. One without a time says that someone edited the file.
const stampSize = 32

// noteStamp notes the ctime that what a step put has by its rename.
func (l *lander) noteStamp(s step, path string) error {
	if s.run.kind == directory || l.linked(s) {
		return nil // a directory's content has other ctimes; see changedBelow
	}
	now, err := l.host.stat(path)
	if err != nil || now.ino != s.run.ino {
		return err // someone was quicker, and that shows
	}
	if !now.same(s.run) {
		now.ctime = stamp{}
	}
	return l.writeStamp(s, now.ctime)
}

func (l *lander) writeStamp(s step, at stamp) error {
	if l.stamps == nil {
		l.stamps = map[int]stamp{}
	}
	l.stamps[s.index] = at
	if l.stampsFile == nil {
		l.landing.point()
		const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND | unix.O_NOFOLLOW | unix.O_CLOEXEC
		fd, err := unix.Openat(l.landing.fd, stampsName, flags, 0o600)
		if err != nil {
			return l.landing.fail("open", stampsName, err)
		}
		l.stampsFile = os.NewFile(uintptr(fd), stampsName)
	}
	b := make([]byte, 0, stampSize)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.index))
	b = binary.LittleEndian.AppendUint64(b, uint64(at.sec))
	b = binary.LittleEndian.AppendUint64(b, uint64(at.nsec))
	b = binary.LittleEndian.AppendUint64(b, uint64(crc32.ChecksumIEEE(b)))
	l.landing.point()
	_, err := l.stampsFile.Write(b)
	return l.landing.fail("write", stampsName, err)
}

// readStamps reads what was noted before the process died.
func (l *lander) readStamps() error {
	fd, err := l.landing.open(stampsName, unix.O_RDONLY)
	if is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), stampsName)
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(len(l.steps))*2*stampSize))
	if err != nil {
		return l.landing.fail("read", stampsName, err)
	}
	l.stamps = map[int]stamp{}
	for b := range slices.Chunk(text, stampSize) {
		// What is not whole, after a loss of power, was not noted.
		if len(b) < stampSize || binary.LittleEndian.Uint64(b[24:]) != uint64(crc32.ChecksumIEEE(b[:24])) {
			continue
		}
		l.stamps[int(binary.LittleEndian.Uint64(b))] = stamp{
			int64(binary.LittleEndian.Uint64(b[8:])), uint32(binary.LittleEndian.Uint64(b[16:])),
		}
	}
	return nil
}

// stampSlack is by how much the ctimes can differ that one rename gives, where a kernel stamps one after
// the other.
const stampSlack = 20 * time.Millisecond

// noteCut notes, for a landing that was cut off, what its process had no time to note. It comes before
// anything is taken back, since that moves ctimes, too.
func (l *lander) noteCut() error {
	died, err := l.landing.stat("")
	if err != nil {
		return err
	}
	for _, s := range l.steps {
		if _, noted := l.stamps[s.index]; noted || !s.puts() || s.run.kind == directory {
			continue
		}
		_, now, err := l.where(s)
		if err != nil {
			return err
		}
		late := now.kind != absent && died.ctime.add(stampSlack).before(now.ctime)
		if late {
			now.ctime = stamp{}
		}
		if now.kind != absent && (late || !l.linked(s)) {
			if err := l.writeStamp(s, now.ctime); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropStamps is for when the landing is done, or was taken back.
func (l *lander) dropStamps() error {
	if l.stampsFile != nil {
		l.stampsFile.Close()
		l.stampsFile = nil
	}
	l.landing.point()
	err := unix.Unlinkat(l.landing.fd, stampsName, 0)
	if err == unix.ENOENT {
		return nil
	}
	return l.landing.fail("remove", stampsName, err)
}

// edited reports whether someone changed what a step put since its rename, by its ctime. It says the
// same later, when the ctime was moved by our taking it back.
func (l *lander) edited(s step, now inode) (bool, error) {
	at, noted := l.stamps[s.index]
	if !noted || at == now.ctime {
		return false, nil
	}
	return true, l.writeStamp(s, stamp{})
}

// wasEdited is what edited said.
func (l *lander) wasEdited(s step) bool {
	at, noted := l.stamps[s.index]
	return noted && at == stamp{}
}

// linked reports whether another step puts another name of the same file: each moves its ctime.
func (l *lander) linked(s step) bool {
	if l.links == nil {
		l.links = map[uint64]int{}
		for _, s := range l.steps {
			if s.puts() {
				l.links[s.run.ino]++
			}
		}
	}
	return l.links[s.run.ino] > 1
}
