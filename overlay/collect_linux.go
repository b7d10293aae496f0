package overlay

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// collector walks a layer beside the workspace and judges every difference. It changes nothing but
// the modes of directories and files in the layer that it could not read otherwise; modes holds what
// they were. The walk holds two descriptors, at any depth.
type collector struct {
	// alive returns why the landing is to end early, if it is. (The walk asks it now and then.)
	alive  func() error
	upper  *tree
	host   *tree
	state  string
	filter filter

	begin   stamp
	trusted bool

	prints     []footprint
	haveprints bool
	modes      map[string]uint32

	changes  []change
	withheld []Withheld // changes that don't land
	stripped []Withheld // parts of changes that do land
}

// place is a directory of the walk that the layer and the workspace both have.
type place struct {
	path   string
	host   inode
	marks  marks
	opaque bool // what the workspace has in it, and the layer has not, was removed by the run
	// swapped is set where the directory, or one that it lies in, may have been swapped for another.
	swapped bool
	git     string // the innermost git directory at or above path, "" if none
	unit    string // the outermost
}

// below returns the place of a directory in p.
func (p place) below(path string, host inode) place {
	p.path, p.host, p.marks = path, host, marks{}
	return p
}

// enterGit notes that p is a git directory.
func (p *place) enterGit() {
	p.git = p.path
	if p.unit == "" {
		p.unit = p.path
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

// collect walks the layer.
func (t *Txn) collect(ctx context.Context, trusted bool) (*collector, error) {
	c := &collector{
		alive: func() error { return context.Cause(ctx) }, upper: t.upper, host: t.w.root, state: t.w.state, filter: t.w.filter,
		begin: t.begin.at, trusted: trusted, modes: t.modes,
	}
	run, err := statAt(c.upper.fd, "")
	if err != nil {
		return c, err
	}
	host, err := statAt(c.host.fd, "")
	if err != nil {
		return c, err
	}
	m, _, err := readMarks(c.upper.fd, ".")
	if err != nil {
		return c, err
	}
	if m.opaque {
		return c, redirectError(".") // the root of a layer always lies over the workspace
	}
	root := place{host: host, marks: m}
	if run.mode != host.mode {
		c.changes = append(c.changes, change{
			kind: setMode, path: "", run: run, host: host, modified: []string{"."},
			conflict: c.dirTouched(host),
		})
	}
	if err := c.dir(root); err != nil {
		return c, err
	}
	c.resolveVanished()
	return c, nil
}

// count is the number of changes that a person would count.
func (c *collector) count() int {
	n := len(c.withheld)
	for _, ch := range c.changes {
		n += ch.count()
	}
	return n
}

// dir judges what the layer has in a directory.
func (c *collector) dir(p place) error {
	if err := c.alive(); err != nil {
		return err
	}
	entries, err := c.entries(&p)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := c.entry(p, e); err != nil {
			return err
		}
	}
	return nil
}

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
	name := baseName(p.path)
	if !isGitDir(name, will) && !isGitDir(name, has) {
		return nil
	}
	p.enterGit()
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
	if e.run.kind != regular && e.run.kind != directory {
		return nil // attributes of the user class exist on these two only
	}
	if err := c.makeReadable(e); err != nil {
		return err
	}
	var redirect bool
	if e.marks, redirect, err = readMarks(fd, e.name); err != nil {
		return c.upper.fail("read attributes of", e.path, err)
	}
	if redirect {
		return redirectError(e.path)
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
	if e.run.mode&need == need {
		return nil
	}
	c.modes[e.path] = e.run.mode
	return c.upper.chmod(e.path, e.run.mode|need)
}

// entry judges one name.
func (c *collector) entry(p place, e entry) error {
	isDir := e.run.kind == directory || e.gone && e.host.kind == directory
	switch {
	case p.path == "" && e.name == insideName && e.gone:
		return nil // our own whiteout
	case reserved(e.name):
		c.withhold(e.path, "reserved name")
		return nil
	case c.filter.ignored(e.path, isDir):
		return nil
	case e.gone:
		_, err := c.removed(p, e.path, e.host, false)
		return err
	case e.run.kind == special:
		c.withhold(e.path, e.run.what)
		return nil
	case e.host.mounted:
		c.withhold(e.path, "another filesystem is mounted there")
		return nil
	case e.held:
		c.withhold(e.path, "protected")
		return nil
	case e.run.kind == directory:
		return c.putDir(p, e)
	}
	return c.putFile(p, e)
}

// reserved names are those of airlock's own directories.
func reserved(name string) bool {
	return name == insideName || strings.HasPrefix(name, besidePrefix)
}

// putFile judges a file or link of the layer.
func (c *collector) putFile(p place, e entry) error {
	if e.host.kind == directory {
		return c.replaceDir(p, e)
	}
	conflict := p.swapped || c.touched(e.host)
	if e.host.kind == e.run.kind {
		same, err := c.compare(e)
		if err != nil {
			return err
		}
		if same == unchanged || conflict && same == sameOutcome {
			if e.run.kind == regular && e.run.mode&setID&^e.host.mode != 0 {
				c.noteSetID(e.path, e.run)
			}
			return nil
		}
	}
	if c.filter.protected(e.path, e.run.kind, p.git) {
		c.withhold(e.path, "protected")
		return nil
	}
	ch := change{kind: put, path: e.path, run: e.run, host: e.host, conflict: conflict, unit: p.unit}
	if e.host.kind == absent {
		ch.added = []string{e.path}
		ch.maybeVanished = e.marks.copied && !p.opaque && c.dirTouched(p.host)
	} else {
		ch.modified = []string{e.path}
	}
	c.noteSetID(e.path, e.run)
	c.changes = append(c.changes, ch)
	return nil
}

// replaceDir judges a file or link that took the place of a directory: both land, or none.
func (c *collector) replaceDir(p place, e entry) error {
	if c.filter.protected(e.path, e.run.kind, p.git) {
		c.withhold(e.path, "protected")
		return nil
	}
	changes, withheld := len(c.changes), len(c.withheld)
	ch := change{kind: put, path: e.path, run: e.run, unit: p.unit, added: []string{e.path}}
	gone := false
	if !c.dirTouched(e.host) {
		var err error
		if gone, err = c.removed(p, e.path, e.host, true); err != nil {
			return err
		}
	}
	if !gone {
		ch.conflict = c.dirTouched(e.host) || slices.ContainsFunc(c.changes[changes:], func(ch change) bool { return ch.conflict })
		c.changes, c.withheld = c.changes[:changes], c.withheld[:withheld]
		if !ch.conflict {
			c.withhold(e.path, "in the place of protected paths")
			return nil
		}
		ch.host = e.host
	}
	c.noteSetID(e.path, e.run)
	c.changes = append(c.changes, ch)
	return nil
}

// putDir judges a directory of the layer.
func (c *collector) putDir(p place, e entry) error {
	switch e.host.kind {
	case directory:
		return c.mergeDir(p, e)
	case absent:
		// A copy of a directory is never moved: overlayfs refuses to rename one.
		return c.newDir(p, e, p.swapped || e.marks.copied && !p.opaque)
	}
	return c.newDir(p, e, p.swapped || c.touched(e.host) || e.marks.copied)
}

// mergeDir judges a directory that both have.
func (c *collector) mergeDir(p place, e entry) error {
	next := p.below(e.path, e.host)
	next.marks = e.marks
	// overlayfs marks a directory as opaque only where the lower layer had something at its path. One
	// without a mark of either kind was made by the run, and by someone else too: nothing was removed.
	next.opaque = p.opaque || e.marks.opaque
	if swapped := c.swapped(p.host, e.host); swapped && e.marks.copied {
		next.swapped = true
	} else if swapped && next.opaque {
		next.opaque = false
		more, err := c.hostHasMore(e.path)
		if err != nil {
			return err
		}
		if more {
			c.changes = append(c.changes, change{kind: remove, path: e.path, host: e.host, conflict: true, unit: p.unit})
		}
	}
	if e.run.mode != e.host.mode && (e.marks.copied || next.opaque) {
		c.changes = append(c.changes, change{
			kind: setMode, path: e.path, run: e.run, host: e.host, unit: p.unit, modified: []string{e.path},
			conflict: next.swapped || c.dirTouched(e.host),
		})
	}
	return c.dir(next)
}

// hostHasMore reports whether a directory of the workspace has a name that the layer's has not.
func (c *collector) hostHasMore(path string) (bool, error) {
	ours, err := c.upper.list(path)
	if err != nil {
		return false, err
	}
	theirs, err := c.host.list(path)
	return slices.ContainsFunc(theirs, func(name string) bool {
		_, found := slices.BinarySearch(ours, name)
		return !found
	}), err
}

func (c *collector) withhold(path, why string) {
	c.withheld = append(c.withheld, Withheld{Path: path, Why: why})
}

// noteSetID notes the set-ID bits that a file loses when it lands.
func (c *collector) noteSetID(path string, run inode) {
	if run.kind != regular {
		return
	}
	if run.mode&unix.S_ISUID != 0 {
		c.stripped = append(c.stripped, Withheld{Path: path, Why: "set-user-ID bit removed"})
	}
	if run.mode&unix.S_ISGID != 0 {
		c.stripped = append(c.stripped, Withheld{Path: path, Why: "set-group-ID bit removed"})
	}
}
