package sandbox

import (
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// shown is what the binds of a spare, and its shell, were made of. A bind shows what was there when it was made, whatever comes
// to be there later.
type shown struct {
	files []identity
	// dirs hold other files that are shown. None of their entries became another one since as long as they are the same, with the
	// same time of change, since to put something else in an entry's place changes the directory. It is one look in place of
	// dozens, for /etc.
	dirs []identity
}

// identity is what was found at a path: zeros for nothing. The time is only a directory's.
type identity struct {
	path     string
	dev, ino uint64
	changed  unix.Timespec
}

func identityAt(path string) identity {
	i := directoryAt(path)
	i.changed = unix.Timespec{}
	return i
}

func directoryAt(path string) identity {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return identity{path: path}
	}
	return identity{path, uint64(st.Dev), st.Ino, st.Ctim}
}

// settled is how long ago a directory must have changed for its next change to have another time: longer than a tick of the
// clock by which filesystems stamp, and than clocks of this host and of a server's differ.
const settled = 10 * time.Second

// shownBy is what is found now at what a base shows.
func shownBy(b base, now time.Time) shown {
	at := map[string][]string{} // by directory
	add := func(file string) { at[path.Dir(file)] = append(at[path.Dir(file)], file) }
	for _, st := range b.Steps {
		if st.Do == doBind {
			add(string(st.Source))
		}
	}
	if b.Shell != nil {
		add(string(b.Shell.Path))
	}
	var s shown
	for dir, files := range at {
		if len(files) > 1 {
			// Before a look at what is in it, which then is not older.
			if d := directoryAt(dir); d.ino != 0 && now.Sub(time.Unix(d.changed.Unix())) > settled {
				s.dirs = append(s.dirs, d)
				continue
			}
		}
		for _, file := range files {
			s.files = append(s.files, identityAt(file))
		}
	}
	return s
}

// unchanged reports whether the same is there still.
func (s shown) unchanged() bool {
	return !slices.ContainsFunc(s.dirs, func(d identity) bool { return d != directoryAt(d.path) }) &&
		!slices.ContainsFunc(s.files, func(f identity) bool { return f != identityAt(f.path) })
}
