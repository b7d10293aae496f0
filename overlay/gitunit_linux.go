package overlay

import (
	"slices"
	"strings"
)

// unitState is a git directory that a landing goes through.
type unitState struct {
	swapped bool // it may be another one than the run had
}

// settleGit decides about each git directory that the run changed something in. Either all of it lands, as
// if nobody else had been there; or, if someone else changed HEAD, a ref or an entry of the index meanwhile,
// only objects do, and what the run's refs led to is kept under other refs.
func (c *collector) settleGit() error {
	var units []string
	for _, ch := range c.changes {
		if ch.unit != "" && c.units[ch.unit] != nil && !slices.Contains(units, ch.unit) {
			units = append(units, ch.unit)
		}
	}
	for _, unit := range units {
		if err := c.settleUnit(unit); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) settleUnit(unit string) error {
	u := gitUnit{c: c, name: unit, path: unitPath(unit)}
	var others []change
	for _, ch := range c.changes {
		if ch.unit == unit {
			u.changes = append(u.changes, ch)
		} else {
			others = append(others, ch)
		}
	}
	if c.units[unit].swapped {
		if slices.ContainsFunc(u.changes, func(ch change) bool { return ch.conflict }) {
			c.withhold(unit, whyTorn)
			c.changes = others
		}
		return nil
	}
	torn, err := u.torn()
	if err != nil {
		return err
	}
	if torn != "" {
		err = u.keepObjects(torn)
	} else {
		u.dismiss()
	}
	c.changes = append(others, u.changes...)
	return err
}

// gitUnit is a git directory whose changes are being judged.
type gitUnit struct {
	c       *collector
	name    string // as reports spell it
	path    string
	changes []change
	// sameIndex is set where the index of the workspace has the entries that it had when the run began, and
	// ownIndex where the run's has no others than one of these two.
	sameIndex, ownIndex bool
}

func (u *gitUnit) below(rel string) string { return joinPath(u.path, rel) }

// own is the path of a file that each working tree has for itself.
func (u *gitUnit) own(rel string) string {
	if s := u.shared(); s != nil {
		rel = s.dir() + "/" + rel
	}
	return u.below(rel)
}

// shared is not nil where the git directory is the one of other working trees, too.
func (u *gitUnit) shared() *sharedGit {
	if u.path != "" {
		return nil
	}
	return u.c.filter.shared
}

func (u *gitUnit) part(ch change) gitPart {
	rel := inUnit(u.name, ch.path)
	if s := u.shared(); s != nil {
		rel = strings.TrimPrefix(rel, s.dir()+"/")
	}
	return partOf(rel)
}

// dismiss drops conflicts that are none in a git directory that lands.
func (u *gitUnit) dismiss() {
	var kept []change
	for _, ch := range u.changes {
		switch part := u.part(ch); {
		case !ch.conflict:
		case part == gitIndex && ch.kind == put && ch.host.kind == regular:
			if u.ownIndex {
				continue // what is there has the same entries
			}
			ch.conflict = false
		case part == gitObjects && ch.kind == put && ch.host.kind == absent:
			ch.conflict = false
		case part == gitRecord && ch.kind != setMode:
			u.c.withhold(ch.path, "changed meanwhile")
			continue
		default:
			continue // an object that both have, or the mode of a directory
		}
		kept = append(kept, ch)
	}
	u.changes = kept
}

// keepObjects leaves only what adds objects, and keeps what the run's refs led to.
func (u *gitUnit) keepObjects(why string) error {
	var kept []change
	lost := false
	for _, ch := range u.changes {
		part := u.part(ch)
		if ch.kind == put && ch.host.kind == absent && newObjects().MatchString(inUnit(u.name, ch.path)) {
			ch.conflict = false
			kept = append(kept, ch)
			continue
		}
		lost = lost || part == gitState || part == gitIndex && !u.ownIndex
	}
	u.changes = kept
	tips, err := u.tips()
	if err != nil {
		return err
	}
	names, err := u.keepTips(tips)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		why += "; kept as " + list(names, 3, quoteItem)
	}
	if lost || len(names) > 0 {
		u.c.withhold(u.name, why)
	}
	return nil
}
