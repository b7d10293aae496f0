package overlay

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// collector walks a layer beside the workspace and judges every difference. It changes nothing but
// the modes of directories and files in the layer that it could not read otherwise; modes holds what
// they were.
type collector struct {
	// alive returns why the landing is to end early, if it is. (The walk asks it now and then.)
	alive  func() error
	upper  *tree
	host   *tree
	filter filter

	run     string // its id
	base    gitBase
	units   map[string]*unitState // by unit: the git directories that the walk goes through
	gitUser GitUser
	targets map[string]bool // the patterns of what git's configuration sends git to
	hiding  []hidingDir     // what the mask showed of the workspace's directories

	begin   stamp
	trusted bool
	// noted takes what nobody touched, if it is not nil. seen is what an earlier walk noted, in place of
	// begin, and disputed what was in conflict then.
	noted    sightings
	seen     sightings
	disputed map[string]bool
	copied   map[string]bool // files of the layer that are copies, although they have lost the mark
	inside   bool            // the layer has a whiteout of ours, for the directory of layers that lies in the workspace

	prints   ownPrints
	modes    map[string]uint32
	shut     map[uint64]uint32 // modes of inodes that have more names
	compared uint64            // bytes of content so far

	relinks []change        // see relink
	linked  map[uint64]bool // inodes of several names that land

	changes  []change
	withheld []Withheld // changes that don't land
	stripped []Withheld // parts of changes that do land
}

// collect walks the layer.
func (t *Txn) collect(ctx context.Context, trusted bool) (*collector, error) {
	c := &collector{
		alive: func() error { return context.Cause(ctx) }, upper: t.upper.trailing(), host: t.w.root.trailing(),
		prints: ownPrints{state: t.w.state}, filter: t.w.filter, hiding: t.hiding,
		run: t.run, base: t.base, units: map[string]*unitState{}, gitUser: t.w.gitUser,
		begin: t.begin.at, trusted: trusted, inside: t.w.scratch.inside, modes: t.modes, noted: t.noted,
		shut: map[uint64]uint32{}, linked: map[uint64]bool{},
	}
	if t.noted != nil {
		c.copied = map[string]bool{}
	}
	if t.parked != nil {
		c.filter = t.filter
		t.parked.tell(c)
	}
	c.filter.shared = t.shared
	defer c.upper.release()
	defer c.host.release()
	run, err := statAt(c.upper.fd, "")
	if err != nil {
		return c, err
	}
	if mode, known := c.modes[""]; known {
		run.mode = mode
	} else if run.mode&0o500 != 0o500 {
		c.modes[""] = run.mode
		if err := unix.Fchmod(c.upper.fd, run.mode|0o500); err != nil {
			return c, c.upper.fail("chmod", "", err)
		}
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
	c.rootMode(run, host)
	c.obeyed()
	if err := c.dir(place{host: host, marks: m}); err != nil {
		return c, err
	}
	c.resolveVanished()
	c.upper.release() // what follows looks at a few paths, each from the root
	c.host.release()
	if err := c.settleGit(); err != nil {
		return c, err
	}
	if err := c.settleDatabases(); err != nil {
		return c, err
	}
	c.relink()
	return c, c.settleShared()
}

// rootMode judges the mode of the workspace itself. One that would shut its owner out stays in the
// layer: no later run could mend it.
func (c *collector) rootMode(run, host inode) {
	switch {
	case run.mode == host.mode:
	case c.filter.shared != nil:
		c.withhold(".", whyProtected)
	case run.mode&0o700 != 0o700:
		c.withhold(".", "shuts the workspace's owner out")
	default:
		c.changes = append(c.changes, change{
			kind: setMode, run: run, host: host, modified: []string{"."}, conflict: c.dirTouched("", host),
		})
	}
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
	if err := c.lookAgain(&p); err != nil {
		return err
	}
	c.note(p, p.path, p.host)
	for _, e := range entries {
		c.note(p, e.path, e.host)
	}
	for _, e := range entries {
		if err := c.entry(p, e); err != nil {
			return err
		}
	}
	return nil
}

// entry judges one name.
func (c *collector) entry(p place, e entry) error {
	isDir := e.run.kind == directory || e.gone && e.host.kind == directory
	switch {
	case p.path == "" && e.name == insideName && e.gone && c.inside:
		return nil // our own whiteout
	case reserved(e.name):
		c.withhold(e.path, whyReserved)
		return nil
	case len(e.path) >= unix.PathMax:
		c.withhold(e.path, whyTooLong)
		return nil
	case c.filter.ignored(e.path, isDir):
		return nil
	case c.filter.hides(e.path, isDir) || e.host.kind != absent && c.filter.hides(e.path, e.host.kind == directory):
		if !e.gone {
			c.withhold(e.path, whyHidden)
		}
		return nil
	case e.gone:
		_, err := c.removed(p, e.path, e.host, false)
		return err
	case e.run.kind == special:
		c.withhold(e.path, e.run.what)
		return nil
	case e.host.mounted:
		c.withhold(e.path, whyMounted)
		return nil
	case e.held:
		c.withhold(e.path, whyProtected)
		return nil
	case e.run.kind == directory:
		return c.putDir(p, e)
	}
	return c.putFile(p, e)
}

// Why a change does not land, as the report has it. Of a directory that stays the name of what it holds is not
// said: the run shall not learn it.
const (
	whyProtected = "protected"
	whyHidden    = "hidden"
	whyHolds     = "stays, with what is hidden in it"
	whyReserved  = "reserved name"
	whyMounted   = "another filesystem is mounted there"
	whyTooLong   = "path too long"
)

// reserved names are those of airlock's own directories.
func reserved(name string) bool {
	return name == insideName || strings.HasPrefix(name, besidePrefix)
}

// putFile judges a file or link of the layer.
func (c *collector) putFile(p place, e entry) (err error) {
	if e.host.kind == directory {
		return c.replaceDir(p, e)
	}
	conflict := p.swapped || c.touched(e.path, e.host)
	if e.host.kind == e.run.kind {
		same, err := c.compare(e, conflict)
		if err != nil {
			return err
		}
		if same == unchanged || conflict && same == sameOutcome {
			if e.run.kind == regular && e.run.mode&setID&^e.host.mode != 0 {
				c.noteStripped(e)
			}
			if !conflict {
				c.mayRelink(p, e)
			}
			return nil
		}
	}
	fixed := c.filter.fixed(e.path, e.host)
	if fixed && e.run.kind == e.host.kind && e.run.size == e.host.size {
		return nil // git sets the times of objects that it would write again
	}
	if fixed {
		c.withhold(e.path, whyProtected)
		return nil
	}
	if why, err := c.heldBack(p, e); err != nil || why != "" {
		c.withhold(e.path, why)
		return err
	}
	ch := c.put(p, e)
	ch.host, ch.conflict = e.host, conflict
	if ch.acl, err = c.inherited(e); err != nil {
		return err
	}
	if e.host.kind == absent {
		ch.added = []string{e.path}
		if c.seen != nil {
			ch.conflict = ch.conflict || c.vanished(e.path)
		} else {
			ch.maybeVanished = e.marks.copied && !p.opaque && c.dirTouched(p.path, p.host)
		}
	} else {
		ch.modified = []string{e.path}
	}
	c.add(ch, e)
	return nil
}

// put is the change that brings a file or link in.
func (c *collector) put(p place, e entry) change {
	return change{kind: put, path: e.path, run: e.run, unit: p.unit, scrubs: c.scrubs(e), linked: e.linked()}
}

// add notes such a change.
func (c *collector) add(ch change, e entry) {
	c.noteStripped(e)
	if ch.linked && !ch.conflict {
		c.linked[e.run.ino] = true
	}
	c.changes = append(c.changes, ch)
}

// replaceDir judges a file or link that took the place of a directory: both land, or none.
func (c *collector) replaceDir(p place, e entry) error {
	if c.filter.protected(e.path, e.run.kind, p.gits) {
		c.withhold(e.path, whyProtected)
		return nil
	}
	changes, withheld := len(c.changes), len(c.withheld)
	ch := c.put(p, e)
	ch.added = []string{e.path}
	gone := false
	if !c.dirTouched(e.path, e.host) {
		var err error
		if gone, err = c.removed(p, e.path, e.host, true); err != nil {
			return err
		}
	}
	if !gone {
		ch.conflict = c.dirTouched(e.path, e.host) || slices.ContainsFunc(c.changes[changes:], func(ch change) bool { return ch.conflict })
		onlyHidden := !slices.ContainsFunc(c.withheld[withheld:], func(w Withheld) bool { return w.Why != whyHolds })
		c.changes, c.withheld = c.changes[:changes], c.withheld[:withheld]
		if !ch.conflict {
			why := "in the place of protected paths"
			if onlyHidden {
				why = "in the place of hidden paths"
			}
			c.withhold(e.path, why)
			return nil
		}
		ch.host = e.host
	}
	c.add(ch, e)
	return nil
}

// putDir judges a directory of the layer.
func (c *collector) putDir(p place, e entry) error {
	if e.host.kind != directory && c.filter.protected(e.path, directory, p.gits) {
		c.withhold(e.path, whyProtected)
		return nil
	}
	switch e.host.kind {
	case directory:
		return c.mergeDir(p, e)
	case absent:
		// A copy of a directory is never moved: overlayfs refuses to rename one.
		return c.newDir(p, e, p.swapped || e.marks.copied && !p.opaque || c.vanished(e.path))
	}
	return c.newDir(p, e, p.swapped || c.touched(e.path, e.host) || e.marks.copied)
}

// mergeDir judges a directory that both have.
func (c *collector) mergeDir(p place, e entry) error {
	next := p.below(e.path, e.host)
	next.marks = e.marks
	// overlayfs marks a directory as opaque only where the lower layer had something at its path. One
	// without a mark of either kind was made by the run, and by someone else too: nothing was removed.
	next.opaque = p.opaque || e.marks.opaque
	if swapped := c.swapped(p, e.path, e.host) && !c.base.is(e.path, e.host); swapped && e.marks.copied {
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
	switch {
	case e.run.mode == e.host.mode || !e.marks.copied && !next.opaque:
	case e.marks.copied && c.shown(e.path, e.run.mode): // the host changed it
	case c.filter.protected(e.path, directory, p.gits), c.filter.shared != nil && !c.filter.shared.own(e.path):
		c.withhold(e.path, whyProtected)
	default:
		c.changes = append(c.changes, change{
			kind: setMode, path: e.path, run: e.run, host: e.host, unit: p.unit, modified: []string{e.path},
			conflict: next.swapped || c.dirTouched(e.path, e.host),
		})
	}
	return c.dir(next)
}

// shown reports whether a mask showed a directory with this mode when the run began.
func (c *collector) shown(path string, mode uint32) bool {
	return slices.ContainsFunc(c.hiding, func(d hidingDir) bool { return d.path == path && d.inode.mode == mode })
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

// noteStripped notes the rights that a file loses when it lands.
func (c *collector) noteStripped(e entry) {
	if e.run.kind != regular {
		return
	}
	for why, lost := range map[string]bool{
		"setuid bit removed":        e.run.mode&unix.S_ISUID != 0,
		"setgid bit removed":        e.run.mode&unix.S_ISGID != 0,
		"file capabilities removed": e.marks.capabilities(),
	} {
		if lost {
			c.stripped = append(c.stripped, Withheld{Path: e.path, Why: why})
		}
	}
}
