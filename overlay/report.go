package overlay

import (
	"fmt"
	"slices"
	"strings"
)

// Report says what became of a transaction. Paths are relative to the workspace, in the bytes that
// the filesystem has; Quote makes them printable. A directory counts as added or deleted only if it
// is empty and was not emptied by withholding. Every list is sorted by path.
type Report struct {
	Landed    bool
	Waiting   string // the run that waits for review; then Landed is false, and the lists say what would land
	Added     []string
	Modified  []string
	Deleted   []string
	Conflicts []Conflict
	Withheld  []Withheld
	Discarded int      // changes that were thrown away
	Reason    string   // why they were, where Landed is false: "timeout", "conflict: a.txt changed meanwhile"
	Notes     []string // further facts a person needs, each a sentence
	Undo      bool     // an undo landed, not a run
	Of        string   // from Undo: the run that it took back, or was to
	OfWhat    string   // from Undo: what that run did, as [Txn.Describe] was told
}

// Conflict is a path that someone else changed while the run was going. The host's version stayed.
type Conflict struct {
	Path   string
	KeptAs string // where the run's version is; "" if the run had deleted the path, or nothing landed
	Gone   bool   // nothing is at the path: the host's version is that there is none
}

// Withheld is a change that did not land although the run did.
type Withheld struct {
	Path string
	Why  string // "protected", "socket", "setuid bit removed", …
}

// namesShown and conflictsShown bound what a line names; the rest is counted.
const (
	namesShown     = 12
	conflictsShown = 5
)

// Summary is the one line that says what became of the workspace:
//
//	workspace: 1 added, 2 modified, 1 deleted: a.txt, b.txt, c.txt, d.txt
//	workspace: 1 modified: b.txt; 1 conflict: a.txt changed meanwhile and was kept, this run's version is a.txt.conflict-7f3a
//	workspace: not landed: 2 modified wait for review: a.txt, b.txt (airlock land 7f3a)
//	workspace: discarded 3 changes (timeout)
//	workspace: no changes
//
// Names are in the order of the counts. Where they are too many to be all named, deletions come first, so that a long list
// never hides one. What is git's own comes after all else.
func (r Report) Summary() string {
	if r.Waiting != "" {
		return r.waits()
	}
	if !r.Landed {
		if r.Discarded == 0 {
			return "workspace: no changes"
		}
		s := "workspace: discarded " + count(r.Discarded, "change")
		if r.Reason != "" {
			s += " (" + r.Reason + ")"
		}
		return s
	}
	var parts []string
	if changes := r.changes(""); changes != "" {
		parts = append(parts, changes)
	}
	if len(r.Conflicts) > 0 {
		parts = append(parts, count(len(r.Conflicts), "conflict")+": "+r.conflicts())
	}
	if len(parts) == 0 {
		return "workspace: no changes"
	}
	return "workspace: " + strings.Join(parts, "; ")
}

// waits is the Summary of what waits for review, or, with a Reason, goes on to.
func (r Report) waits() string {
	hint := " (airlock land " + r.Waiting + ")"
	if r.Reason != "" {
		return "workspace: nothing landed: " + r.Reason + "; the run waits on" + hint
	}
	verb := " wait for review"
	if len(r.Added)+len(r.Modified)+len(r.Deleted) == 1 {
		verb = " waits for review"
	}
	var parts []string
	if changes := r.changes(verb); changes != "" {
		parts, verb = append(parts, changes), ""
	} else if len(r.Conflicts) == 1 {
		verb = " waits for review"
	}
	if len(r.Conflicts) > 0 {
		parts = append(parts, count(len(r.Conflicts), "conflict")+verb+": "+
			list(r.Conflicts, conflictsShown, func(c Conflict) string { return quoteItem(c.Path) + " changed meanwhile" }))
	}
	return "workspace: not landed: " + strings.Join(parts, "; ") + hint
}

// changes counts what landed, with a verb, and names it; "" if nothing did.
func (r Report) changes(verb string) string {
	var counts []string
	for _, c := range []struct {
		n    int
		verb string
	}{{len(r.Added), "added"}, {len(r.Modified), "modified"}, {len(r.Deleted), "deleted"}} {
		if c.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.verb))
		}
	}
	if len(counts) == 0 {
		return ""
	}
	names := slices.Concat(r.Added, r.Modified, r.Deleted)
	if len(names) > namesShown {
		names = slices.Concat(r.Deleted, r.Modified, r.Added)
	}
	slices.SortStableFunc(names, func(a, b string) int { return gitsOwn(a) - gitsOwn(b) })
	return strings.Join(counts, ", ") + verb + ": " + list(names, namesShown, quoteItem)
}

func (r Report) conflicts() string {
	return list(r.Conflicts, conflictsShown, func(c Conflict) string {
		s, version := quoteItem(c.Path)+" changed meanwhile and was kept", "this run's version"
		if r.Undo {
			version = "the version from before the run"
		}
		switch {
		case c.Gone:
			s = quoteItem(c.Path) + " was removed meanwhile and stays so"
		case c.KeptAs == "":
			s += " as it is"
		}
		if c.KeptAs == "" {
			return s
		}
		return s + ", " + version + " is " + quoteItem(c.KeptAs)
	})
}

// WithheldLine is the line that names what did not land although the run did, or "".
func (r Report) WithheldLine() string {
	if len(r.Withheld) == 0 {
		return ""
	}
	return "withheld: " + list(r.Withheld, namesShown, func(w Withheld) string {
		return quoteItem(w.Path) + " (" + w.Why + ")"
	})
}

// gitsOwn is 1 for what lies in a git directory, and 0 for all else: a commit changes many files there that tell a reader nothing.
func gitsOwn(path string) int {
	if strings.HasPrefix(path, ".git/") || strings.Contains(path, "/.git/") {
		return 1
	}
	return 0
}

// list writes the first max items and counts the rest.
func list[T any](items []T, max int, show func(T) string) string {
	var b strings.Builder
	for i, item := range items {
		if i == max {
			fmt.Fprintf(&b, " and %d more", len(items)-max)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(show(item))
	}
	return b.String()
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// sort puts every list in the order of paths, so that equal outcomes give equal reports.
func (r *Report) sort() {
	slices.Sort(r.Added)
	slices.Sort(r.Modified)
	slices.Sort(r.Deleted)
	slices.SortFunc(r.Conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(r.Withheld, func(a, b Withheld) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Why, b.Why)
	})
	r.Conflicts = slices.Compact(r.Conflicts)
	r.Withheld = slices.Compact(r.Withheld)
}
