package overlay

import (
	"strings"
)

// Who takes back the last run and then the one before it means both. What the first undo brought back has another
// ctime than when the older run landed it, and a directory another inode, but it is what that run left. So before an
// undo compares, it looks back through the later landings that were taken back: what one of them displaced and its
// undo put there again counts as what was displaced.

// takenBack is a later landing and the undo of it.
type takenBack struct {
	was    map[string]inode // what the landing displaced, by path
	put    []step           // what the undo put
	marker *stamp           // a moment after it was put
}

// readLater reads the later landings that were taken back, the newest undo first.
func (u *undoing) readLater(h *tree, of historyEntry) error {
	entries, err := h.entries()
	if err != nil {
		return err
	}
	later := map[string]record{}
	for _, e := range entries {
		if e.time <= of.time {
			continue
		}
		r, err := h.readEntry(e)
		if err != nil {
			continue // one that can't be read makes more look changed than is
		}
		landing, found := later[entryKey(r.Undoes)]
		later[entryKey(e.String())] = r
		if r.Undoes == "" || !found {
			continue
		}
		t, err := u.pair(landing, r)
		if err != nil {
			return err
		}
		u.later = append([]takenBack{t}, u.later...)
	}
	return nil
}

func (u *undoing) pair(landing, undo record) (takenBack, error) {
	t := takenBack{was: map[string]inode{}}
	if undo.Marker != nil {
		t.marker = &stamp{undo.Marker.Sec, undo.Marker.Nsec}
	}
	for _, recorded := range landing.Steps {
		s, err := recorded.step(landing.Root.Dev, u.dev)
		if err != nil {
			return t, err
		}
		if s.kind == swapIn || s.kind == takeAway || s.kind == removeDir {
			t.was[s.path] = s.host
		}
	}
	for _, recorded := range undo.Steps {
		s, err := recorded.step(undo.Root.Dev, u.dev)
		if err != nil {
			return t, err
		}
		if s.kind == putNew || s.kind == swapIn {
			t.put = append(t.put, s)
		}
	}
	return t, nil
}

// seen is the inode at a path as it was before the later landings that were taken back.
func (u *undoing) seen(path string, now inode) inode {
	for _, t := range u.later {
		was, found := t.was[path]
		if !found || was.kind != now.kind || now.kind != directory && was.ino != now.ino || !t.restored(path, now) {
			continue
		}
		was.links, was.mounted = now.links, now.mounted
		if now.kind == directory && t.touched(path, u.prints.without(now)) {
			was.ctime = now.ctime
		}
		now = was
	}
	return now
}

// restored reports whether what lies at a path is what the undo put there.
func (t takenBack) restored(path string, now inode) bool {
	for _, s := range t.put {
		switch {
		case s.path == path && now.kind == directory:
			return s.landed.ino == now.ino
		case s.path == path:
			landed := s.landed
			landed.links = now.links // the ctime tells
			return landed == now
		case strings.HasPrefix(path, s.path+"/"): // in a directory that it put
			return t.marker != nil && now.ctime.before(*t.marker)
		}
	}
	return false
}

// touched reports whether someone changed the names in a directory since the undo put it.
func (t takenBack) touched(path string, ctime stamp) bool {
	for _, s := range t.put {
		if s.path == path {
			return s.landed.ctime.before(ctime)
		}
	}
	return false
}

// stat is the inode at a path, and what it is to be compared as.
func (u *undoing) stat(path string) (now, seen inode, err error) {
	if now, err = u.w.root.stat(path); err != nil {
		return now, now, err
	}
	return now, u.seen(path, now), nil
}
