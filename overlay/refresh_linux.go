package overlay

import (
	"context"

	"golang.org/x/sys/unix"
)

// refresh notes anew what the landing of an undo put, or of a run that waited: dropping the other names
// that it had in the history, or in the layer that waited, moved its ctimes.
func (l *lander) refresh(r record, base *tree) error {
	m, err := takeMarker(context.Background(), base)
	if err != nil {
		return err
	}
	h, err := openHistory(base)
	if h == nil {
		return err
	}
	defer h.close()
	e, ok := parseEntry(r.Entry)
	if !ok {
		return nil
	}
	entry, err := h.readEntry(e)
	if err != nil {
		return err
	}
	for i, s := range entry.Steps {
		if s.Landed == nil {
			continue
		}
		then, err := s.Landed.inode()
		if err != nil {
			return err
		}
		now, err := l.host.stat(string(s.Path))
		if err == nil && now.same(then) {
			entry.Steps[i].Landed = recordInode(now)
		}
	}
	if entry.Marker != nil && (!r.Waited || l.asPut()) {
		entry.Marker = &recordedStamp{m.at.sec, m.at.nsec}
	}
	text, err := entry.encode()
	if err != nil {
		return err
	}
	return l.landing.replace(entryName, text, l.w.config.Durable)
}

// asPut reports whether the directories that the landing put, and what is in them, are as they were
// staged. Their files had other names, which went, so that ctimes of files say nothing.
func (l *lander) asPut() bool {
	for _, s := range l.steps {
		if s.kind != putNew && s.kind != swapIn || s.run.kind != directory {
			continue
		}
		now, err := l.host.stat(s.path)
		if err != nil || !now.same(s.run) || now.mtime != s.run.mtime || l.marker == nil || !l.asPutBelow(s.path) {
			return false
		}
	}
	return true
}

func (l *lander) asPutBelow(path string) bool {
	names, err := l.host.list(path)
	if err != nil {
		return is(err, unix.EACCES) // as the run made it
	}
	for _, name := range names {
		i, err := l.host.stat(joinPath(path, name))
		switch {
		case err != nil || !i.mtime.before(*l.marker):
			return false
		case i.kind == directory && (!i.ctime.before(*l.marker) || !l.asPutBelow(joinPath(path, name))):
			return false
		}
	}
	return true
}
