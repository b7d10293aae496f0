package overlay

import (
	"slices"

	"golang.org/x/sys/unix"
)

// newDir judges a directory that the workspace does not have as one. It lands whole, by one rename,
// without what is withheld in it; in conflict it lands whole under another name.
func (c *collector) newDir(p place, e entry, conflict bool) error {
	s := subtree{c: c, conflict: conflict}
	next := p.below(e.path, inode{})
	next.marks = e.marks
	some, err := s.walk(next)
	if err != nil || !some {
		return err
	}
	c.noteStripped(e)
	s.scrubs = append(s.scrubs, c.scrubs(e)...)
	ch := change{
		kind: put, path: e.path, run: e.run, host: e.host, conflict: conflict, unit: p.unit,
		prune: s.prune, scrubs: s.scrubs, linked: s.linked, added: s.added,
	}
	if e.host.kind != absent {
		ch.deleted = []string{e.path}
	}
	c.changes = append(c.changes, ch)
	return nil
}

// subtree is the walk through a new directory.
type subtree struct {
	c        *collector
	conflict bool
	added    []string
	prune    []string
	scrubs   []scrub
	linked   bool
}

// walk reports whether anything in the directory lands: one that is empty does, one that would be
// emptied by withholding does not.
func (s *subtree) walk(p place) (some bool, err error) {
	names, err := s.c.upper.list(p.path)
	if err != nil {
		return false, err
	}
	entries := make([]entry, 0, len(names))
	err = s.c.upper.at(p.path, func(fd int) error {
		for _, name := range names {
			e := entry{name: name, path: joinPath(p.path, name)}
			if err := s.c.read(fd, &e, p.marks); err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	if isGitDir(baseName(p.path), func(name string) bool { return slices.Contains(names, name) }) {
		p.enterGit(true)
	}
	emptied := false
	left := map[string]bool{}
	for _, e := range entries {
		var lands, held bool
		if db := databaseOf(e.name); left[db] && e.run.kind == regular {
			s.c.withhold(e.path, "its database is withheld") // which stands before it in the list
			held = true
		} else if lands, held, err = s.entry(p, e); err != nil {
			return false, err
		}
		left[e.name] = held
		some = some || lands
		emptied = emptied || held
		if !lands {
			s.prune = append(s.prune, e.path)
		}
	}
	if !some && !emptied && !s.conflict {
		s.added = append(s.added, p.path)
		return true, nil
	}
	return some, s.c.alive()
}

// entry reports whether one name lands, and, if not, whether something was withheld with it.
func (s *subtree) entry(p place, e entry) (lands, held bool, err error) {
	isDir := e.run.kind == directory
	switch {
	case e.gone:
		return false, false, nil
	case reserved(e.name):
		s.c.withhold(e.path, whyReserved)
	case len(e.path) >= unix.PathMax:
		s.c.withhold(e.path, whyTooLong)
	case s.c.filter.ignored(e.path, isDir):
	case s.c.filter.hides(e.path, isDir):
		s.c.withhold(e.path, whyHidden)
	case e.run.kind == special:
		s.c.withhold(e.path, e.run.what)
	case isDir && s.c.protected(e.path, directory, p.gits):
		s.c.withhold(e.path, whyProtected)
	case isDir:
		next := p.below(e.path, inode{})
		next.marks = e.marks
		if lands, err = s.walk(next); lands {
			s.c.noteStripped(e)
			s.scrubs = append(s.scrubs, s.c.scrubs(e)...) // else it is pruned, and not there when it is their turn
		}
		return lands, !lands, err
	default:
		if why, err := s.c.heldBack(p, e); err != nil || why != "" {
			s.c.withhold(e.path, why)
			return false, true, err
		}
		s.c.noteStripped(e)
		s.scrubs = append(s.scrubs, s.c.scrubs(e)...)
		if e.linked() {
			s.linked, s.c.linked[e.run.ino] = true, true
		}
		s.added = append(s.added, e.path)
		return true, false, nil
	}
	return false, true, nil
}
