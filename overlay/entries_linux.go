package overlay

import (
	"path/filepath"
	"slices"
	"strings"
)

// place is a directory of the walk that the layer and the workspace both have.
type place struct {
	path   string
	host   inode
	marks  marks
	opaque bool // what the workspace has in it, and the layer has not, was removed by the run
	// swapped is set where the directory, or one that it lies in, may have been swapped for another.
	swapped bool
	gits    []string // the git directories at or above path; the workspace itself, "", can be one
	newGit  bool     // the innermost of them is none in the workspace yet
	unit    string   // the repository among them that lands as one, as the report spells it; "" if there is none
}

// below returns the place of a directory in p.
func (p place) below(path string, host inode) place {
	p.path, p.host, p.marks = path, host, marks{}
	return p
}

// enterGit notes that p is a git directory, and whether the run made it one.
func (p *place) enterGit(made bool) {
	p.newGit = made
	p.gits = append(slices.Clip(p.gits), p.path) // places of siblings share what is there
	// A submodule's is a repository of its own, wherever it lies.
	if p.unit == "" || strings.HasPrefix(inUnit(p.unit, p.path), "modules/") {
		p.unit = reportPath(p.path)
	}
}

// entry is a name in a place.
type entry struct {
	name  string
	path  string
	run   inode
	marks marks
	host  inode
	gone  bool // the run removed it
	held  bool // it would make a git directory of one that has what git obeys
}

// linked reports whether the run's file has other names.
func (e entry) linked() bool { return e.run.kind == regular && e.run.links > 1 }

// entries reads the names of a place. It also finds out whether it is a git directory.
func (c *collector) entries(p *place) ([]entry, error) {
	names, err := c.upper.list(p.path)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(names))
	err = c.upper.at(p.path, func(fd int) error {
		for _, name := range names {
			e := entry{name: name, path: joinPath(p.path, name)}
			if err := c.read(fd, &e, p.marks); err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if p.opaque {
		below, err := c.host.list(p.path)
		if err != nil {
			return nil, err
		}
		for _, name := range below {
			if _, found := slices.BinarySearch(names, name); !found {
				entries = append(entries, entry{name: name, path: joinPath(p.path, name), gone: true})
			}
		}
	}
	return entries, c.host.at(p.path, func(fd int) error {
		for i := range entries {
			var err error
			if entries[i].host, err = statAt(fd, entries[i].name); err != nil {
				return err
			}
		}
		return c.findGit(p, entries, fd)
	})
}

// findGit notes whether p is a git directory once the run has landed, and holds back what would
// make it one around files that git obeys: those landed when they meant nothing.
func (c *collector) findGit(p *place, entries []entry, host int) error {
	has := func(name string) bool {
		i, err := statAt(host, name)
		return err == nil && i.kind != absent
	}
	will := func(name string) bool {
		if i, found := slices.BinarySearchFunc(entries, name, func(e entry, name string) int {
			return strings.Compare(e.name, name)
		}); found {
			return !entries[i].gone
		}
		return !p.opaque && has(name)
	}
	if p.opaque {
		slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	}
	if p.path != "" && (has(".git") || has("HEAD") && has("config")) {
		c.obeyedBy(p.path)
	}
	name := baseName(p.path)
	if p.path == "" {
		name = filepath.Base(c.host.path)
	}
	if !isGitDir(name, will) && !isGitDir(name, has) {
		return nil
	}
	p.enterGit(!has("HEAD"))
	if c.units[p.unit] == nil {
		c.units[p.unit] = &unitState{swapped: p.swapped}
	}
	if isGitDir(name, has) || !slices.ContainsFunc(gitDangerous, has) {
		return nil
	}
	for i := range entries {
		if slices.Contains(gitEssential, entries[i].name) && entries[i].host.kind == absent {
			entries[i].held = true
		}
	}
	return nil
}

// read says what name is in the open directory of the layer, whose own marks are given.
func (c *collector) read(fd int, e *entry, dir marks) (err error) {
	if e.run, err = statAt(fd, e.name); err != nil {
		return err
	}
	if e.run.whiteout {
		e.gone = true
		return nil
	}
	switch e.run.kind {
	case regular, directory:
		if err := c.makeReadable(e); err != nil {
			return err
		}
	case symlink: // has no attributes of the user class, but may have a security module's
	default:
		return nil
	}
	var redirect bool
	if e.marks, redirect, err = readMarks(fd, e.name); err != nil {
		return c.upper.fail("read attributes of", e.path, err)
	}
	if redirect {
		return redirectError(e.path)
	}
	if err := c.given.leave(&e.marks); err != nil {
		return err
	}
	e.marks.copied = e.marks.copied || c.copied[e.path]
	if c.noted != nil && e.run.kind == regular {
		c.keepOf(e)
	}
	e.gone = e.marks.whiteout && dir.xattrs && e.run.kind == regular && e.run.size == 0
	return nil
}

// makeReadable opens an entry of the layer up to its owner, who may be us without root's rights.
func (c *collector) makeReadable(e *entry) error {
	need := uint32(0o400)
	if e.run.kind == directory {
		need = 0o500
	}
	if mode, known := c.modes[e.path]; known {
		e.run.mode = mode // a second walk
		return nil
	}
	if was, other := c.shut[e.run.ino]; other && e.run.links > 1 {
		e.run.mode, c.modes[e.path] = was, was
		return nil
	}
	if e.run.mode&need == need {
		return nil
	}
	c.modes[e.path] = e.run.mode
	if e.run.links > 1 {
		c.shut[e.run.ino] = e.run.mode
	}
	return c.upper.chmod(e.path, e.run.mode|need)
}
