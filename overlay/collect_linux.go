package overlay

import (
	"context"
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
	given    given
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
		prints: ownPrints{state: t.w.state}, given: given{in: t.w.scratch.server}, filter: t.w.filter, hiding: t.hiding,
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
	nothing, err := t.upper.empty("")
	if err != nil {
		return c, err
	}
	if !nothing { // most commands write nothing, and git's configuration takes longer to read than they take
		c.obeyed()
	}
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

func (c *collector) withhold(path, why string) {
	c.withheld = append(c.withheld, Withheld{Path: path, Why: why})
}
