package overlay

import (
	"slices"
	"strconv"
	"strings"
)

// stepKind is what one step of a landing does. Each is one rename, or one call that is as atomic.
type stepKind uint8

const (
	takeAway  stepKind = iota // move a file or link out of the workspace
	removeDir                 // remove a directory that is empty by now
	putNew                    // move something to a path that is free
	swapIn                    // exchange something with what is at its path
	putBeside                 // move something to a conflict name
	applyMode                 // set the mode of a directory
)

// stepNames are what the journal calls them.
var stepNames = [...]string{
	takeAway: "take away", removeDir: "remove directory", putNew: "put", swapIn: "exchange",
	putBeside: "put beside", applyMode: "set mode",
}

// step is one step of a landing, as plain data, so that a list of them can be written down before
// the first is taken.
type step struct {
	kind stepKind
	change

	// index is the step's place in the plan. Its decimal form is a name in the directory of the
	// landing: what the step puts lies there before, what it takes or replaces afterwards.
	index int
	// landed is what lay at the path when the landing was done, and attrs are the attributes of a
	// directory that it removed.
	landed inode
	attrs  map[string][]byte
	// entries is a digest of what lay at the path then, if that was an index of git.
	entries []byte
}

// name is the step's name in the directory of the landing.
func (s step) name() string { return strconv.Itoa(s.index) }

// puts reports whether the step brings something into the workspace.
func (s step) puts() bool { return s.kind == putNew || s.kind == swapIn || s.kind == putBeside }

// plan is a landing that was thought through and not begun. Steps are in the order to take them.
type plan struct {
	steps   []step
	report  Report // what holds if every step succeeds
	refused bool   // nothing lands
}

// plan orders the changes:
//
//  1. git's objects come in, since refs of the workspace must never lead to what is not there, and git keeps
//     looking at it meanwhile;
//  2. what was removed leaves, the entries of a directory before the directory;
//  3. what is new or different comes in; each is one rename, because a new directory comes whole, so
//     that none depends on another;
//  4. the modes of directories are set, the inner ones first, since one of them may forbid the rest.
//
// A conflict comes in beside the host's version, or refuses the whole landing. Git directories are
// exempt: one that is in conflict is left out as a whole.
func (c *collector) plan(discardOnConflict bool) plan {
	var p plan
	p.report.Withheld = slices.Concat(c.withheld, c.stripped)
	changes := p.leaveOut(c.changes)
	if i := slices.IndexFunc(changes, func(ch change) bool { return ch.conflict }); i >= 0 && discardOnConflict {
		p.refuse(changes)
		return p
	}
	p.report.Landed = true
	early, changes := objectsFirst(changes)
	for _, ch := range early {
		p.steps = append(p.steps, step{kind: putNew, change: ch})
	}
	for _, ch := range changes {
		if ch.kind != remove {
			continue
		}
		switch {
		case ch.conflict:
			p.report.Conflicts = append(p.report.Conflicts, Conflict{Path: ch.path})
		case ch.host.kind == directory:
			p.steps = append(p.steps, step{kind: removeDir, change: ch})
		default:
			p.steps = append(p.steps, step{kind: takeAway, change: ch})
		}
	}
	for _, ch := range changes {
		switch {
		case ch.kind != put:
		case ch.conflict:
			p.steps = append(p.steps, step{kind: putBeside, change: ch})
		case ch.host.kind == absent:
			p.steps = append(p.steps, step{kind: putNew, change: ch})
		default:
			p.steps = append(p.steps, step{kind: swapIn, change: ch})
		}
	}
	for _, ch := range slices.Backward(changes) {
		switch {
		case ch.kind != setMode:
		case ch.conflict:
			p.report.Conflicts = append(p.report.Conflicts, Conflict{Path: reportPath(ch.path)})
		default:
			p.steps = append(p.steps, step{kind: applyMode, change: ch})
		}
	}
	for i := range p.steps {
		p.steps[i].index = i
	}
	return p
}

// objectsFirst takes the objects that are added to git directories out of the changes, in an order in which
// git can meet them: it takes a pack for there once its idx is.
func objectsFirst(changes []change) (objects, rest []change) {
	var indexes []change
	for _, ch := range changes {
		rel := inUnit(ch.unit, ch.path)
		switch {
		case ch.unit == "" || ch.kind != put || ch.conflict || ch.host.kind != absent || !newObjects().MatchString(rel):
			rest = append(rest, ch)
		case strings.HasSuffix(rel, ".idx"):
			indexes = append(indexes, ch)
		default:
			objects = append(objects, ch)
		}
	}
	return append(objects, indexes...), rest
}

// leaveOut drops the changes in git directories that are in conflict.
func (p *plan) leaveOut(changes []change) []change {
	torn := map[string]bool{}
	for _, ch := range changes {
		if ch.conflict && ch.unit != "" {
			torn[ch.unit] = true
		}
	}
	if len(torn) == 0 {
		return changes
	}
	var rest []change
	for _, ch := range changes {
		if !torn[ch.unit] {
			rest = append(rest, ch)
		}
	}
	for unit := range torn {
		why := whyTorn
		if slices.ContainsFunc(changes, func(ch change) bool {
			return ch.unit == unit && (ch.path == unit && ch.host.kind != directory || databaseOf(ch.path) == unit)
		}) {
			why = "database changed meanwhile"
		}
		p.report.Withheld = append(p.report.Withheld, Withheld{Path: unit, Why: why})
	}
	return rest
}

// whyTorn is why a git directory did not land.
const whyTorn = "git directory changed meanwhile"

// refuse makes a plan that lands nothing.
func (p *plan) refuse(changes []change) {
	p.refused = true
	for _, ch := range changes {
		p.report.Discarded += ch.count()
		if ch.conflict {
			p.report.Conflicts = append(p.report.Conflicts, Conflict{Path: reportPath(ch.path)})
		}
	}
	p.report.Withheld = nil // nothing landed that they could be apart from
	p.report.Reason = conflictReason(p.report.Conflicts[0].Path)
}

func conflictReason(path string) string {
	return "conflict: " + Quote(path) + " changed meanwhile"
}

// reportPath is how the report spells a path.
func reportPath(path string) string {
	if path == "" {
		return "."
	}
	return path
}
