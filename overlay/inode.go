package overlay

import "time"

// kind is what lies at a path.
type kind uint8

const (
	absent kind = iota
	regular
	directory
	symlink
	special // a FIFO, socket or device; never opened
)

// stamp is a time as the kernel keeps it: seconds and nanoseconds since 1970. (An int64 of
// nanoseconds would wrap for times that a run can set.)
type stamp struct {
	sec  int64
	nsec uint32
}

func (s stamp) before(t stamp) bool {
	return s.sec < t.sec || s.sec == t.sec && s.nsec < t.nsec
}

// add returns the time that is d, at most a second, later.
func (s stamp) add(d time.Duration) stamp {
	s.nsec += uint32(d)
	if s.nsec >= 1e9 {
		s.sec, s.nsec = s.sec+1, s.nsec-1e9
	}
	return s
}

// inode is what the kernel says of a path, without following a link. The zero value says that
// nothing is there.
type inode struct {
	kind     kind
	what     string // the name of a special kind: "FIFO"
	whiteout bool   // a character device 0:0
	mounted  bool   // another filesystem is mounted there
	mode     uint32 // permission bits with set-ID and sticky
	uid, gid uint32
	dev, ino uint64
	size     uint64
	links    uint32 // names that it has; 0 for a directory
	mtime    stamp
	ctime    stamp
}

// setID are the mode bits that never land on a file.
const setID = 0o6000

// landedMode is the mode that an entry has after it landed.
func (i inode) landedMode() uint32 {
	if i.kind == regular {
		return i.mode &^ setID
	}
	return i.mode
}

// same reports whether j is what i was, by everything that a rename leaves as it is: the ctime is
// moved by the rename itself, and other names come and go.
func (i inode) same(j inode) bool {
	i.ctime, j.ctime = stamp{}, stamp{}
	i.links, j.links = 0, 0
	if i.kind == directory {
		// Their size and times follow their entries, which are judged one by one.
		i.size, j.size, i.mtime, j.mtime = 0, 0, stamp{}, stamp{}
	}
	return i == j
}
