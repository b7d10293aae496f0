package overlay

import (
	"golang.org/x/sys/unix"

	"airlock/internal/units"
)

// finish makes the landing part of the history.
func (l *lander) finish(r record) error {
	if err := l.seal(r); err != nil {
		return err
	}
	return l.enter(r)
}

// seal writes down what landed, beside what it replaced.
func (l *lander) seal(r record) error {
	r.Opened, r.Steps = nil, nil
	for _, s := range l.steps {
		if !l.taken[s.index] {
			continue
		}
		s, err := l.landed(s)
		if err != nil {
			return err
		}
		r.Steps = append(r.Steps, recordStep(s))
	}
	l.report.sort()
	r.Report = recordReport(l.report)
	text, err := r.encode()
	if err != nil {
		return err
	}
	if err := l.landing.write(entryName, text, l.w.config.Durable); err != nil {
		return err
	}
	return l.syncParents(l.steps)
}

// enter puts the landing into the history. The rename in it is the moment from which on it has landed.
func (l *lander) enter(r record) error {
	base := l.w.scratch.base
	history, err := makeHistory(base)
	if err != nil {
		return err
	}
	defer history.close()
	e, _ := parseEntry(r.Entry)
	err = l.w.changeHistory(history, func(entries []historyEntry) ([]historyEntry, error) {
		return append(entries, e), move(l.t.dir, landingName, history, r.Entry, unix.RENAME_NOREPLACE)
	})
	if err != nil {
		return err
	}
	// It has landed, so that an error is none of the landing. Without durability it is none at all.
	for _, dir := range []*tree{history, base, l.t.dir} {
		if err := l.w.sync(dir, ""); err != nil {
			l.report.Notes = append(l.report.Notes, "The landing may not survive a loss of power: "+Quote(err.Error())+".")
		}
	}
	return nil
}

// landed adds to a step that was taken what undo wants to know.
func (l *lander) landed(s step) (_ step, err error) {
	switch s.kind {
	case removeDir:
		s.attrs, err = l.landing.attributes(s.name())
	case putNew, swapIn, applyMode:
		var now inode
		if now, err = l.host.stat(s.path); err == nil && (s.kind == applyMode || l.asLanded(s, now)) {
			s.landed = now // otherwise someone changed it already
			if s.isIndex() {
				s.entries = l.w.indexAt(s.path)
			}
		}
	}
	return s, err
}

// asLanded reports whether what a step put is at its path yet, as it was put.
func (l *lander) asLanded(s step, now inode) bool {
	at, noted := l.stamps[s.index]
	return now.ino == s.run.ino && now.same(s.run) && (!noted || now.ctime == at)
}

// replaced is how many bytes the plan replaces and removes.
func (l *lander) replaced() (bytes uint64) {
	for _, s := range l.steps {
		if (s.kind == takeAway || s.kind == swapIn) && s.host.kind == regular {
			bytes += s.host.size
		}
	}
	return bytes
}

// settle does what is left to do for a landing that is in the history. It can be done again. What
// fails is noted: it is no reason to say that nothing landed.
func (l *lander) settle(r record, base *tree) {
	failed := func(err error) {
		if err != nil {
			l.report.Notes = append(l.report.Notes, "What the landing left could not be removed: "+Quote(err.Error())+".")
		}
	}
	for _, s := range l.steps {
		if s.kind == removeDir {
			failed(l.unlinkDir(s))
		}
	}
	if r.Undoes != "" {
		failed(markUndone(base, r.Undoes))
		if l.t != nil {
			failed(l.refresh(r, base))
		}
	}
	failed(l.dropStamps())
	if r.Waited {
		failed(removeWaiting(base, r.Run))
		failed(l.refresh(r, base))
	}
	failed(l.w.trim(base))
	l.noteDropped(r)
	failed(l.w.removeJournal())
}

// noteDropped notes that what the landing replaced is too much to be kept. Where nothing is, the person has said so.
func (l *lander) noteDropped(r record) {
	e, _ := parseEntry(r.Entry)
	if limit := l.w.config.Undo; limit > 0 && e.size > uint64(limit) {
		l.report.Notes = append(l.report.Notes, "It can't be undone: what it replaced takes "+units.Size(e.size).Rounded()+", and workspace.undo is "+limit.String()+".")
	}
}

// unlinkDir removes a directory that a landing took out. From now on nobody who has it open can make
// a file in it; if someone did before, it goes back.
func (l *lander) unlinkDir(s step) error {
	l.landing.point()
	err := unix.Unlinkat(l.landing.fd, s.name(), unix.AT_REMOVEDIR)
	switch err {
	case nil, unix.ENOENT:
		return nil
	case unix.ENOTEMPTY, unix.EEXIST:
		l.report.Conflicts = append(l.report.Conflicts, Conflict{Path: s.path})
		return l.giveBack(s)
	}
	return l.landing.fail("rmdir", s.name(), err)
}
