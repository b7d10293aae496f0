package gitconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Change is a configuration file of a git directory as a run found it and as it left it.
type Change struct {
	Before, After []Entry
	// New is set where the git directory itself is new. What git init and git clone write is allowed then.
	New bool
}

// Refused returns nil if the change can make git neither run anything nor send anything elsewhere, and
// otherwise what of it might.
//
// Allowed are user.name and user.email; remotes that are new, with an https or ssh address; and branches
// that follow a remote, or that are gone. All else must be there as it was, in the same order, since the
// last of several values counts and an included file stands where its include is.
func (c Change) Refused() error {
	before, err := c.kept(c.Before, c.After)
	if err != nil {
		return err
	}
	after, err := c.kept(c.After, c.Before)
	if err != nil {
		return err
	}
	for i := range max(len(before), len(after)) {
		switch {
		case i == len(after):
			return fmt.Errorf("%s was removed", before[i].name())
		case i == len(before) || before[i] != after[i]:
			return fmt.Errorf("%s was changed", after[i].name())
		}
	}
	for _, name := range subsections(c.After, "remote") {
		if !has(c.Before, "remote", name) {
			if err := newRemote(name, section(c.After, "remote", name)); err != nil {
				return err
			}
		}
	}
	for _, name := range subsections(c.After, "branch") {
		if err := c.branch(name); err != nil {
			return err
		}
	}
	return nil
}

// kept returns the entries that are not judged for themselves and must be the same on both sides.
func (c Change) kept(entries, other []Entry) ([]Entry, error) {
	var kept []Entry
	for _, e := range entries {
		switch {
		case e.Section == "user" && e.Subsection == "" && (e.Key == "name" || e.Key == "email"):
			if e.Implicit && !slices.Contains(other, e) {
				return nil, fmt.Errorf("%s has no value", e.name())
			}
			continue
		case e.Section == "branch" && e.Subsection != "":
			continue
		case e.Section == "remote" && e.Subsection != "" && !has(c.Before, "remote", e.Subsection):
			continue
		case c.New && initial(e):
			continue
		}
		kept = append(kept, e)
	}
	return kept, nil
}

// initial reports whether git init or git clone writes the entry, whatever it says of the repository.
func initial(e Entry) bool {
	if e.Subsection != "" {
		return false
	}
	var values []string
	switch e.Section + "." + e.Key {
	case "core.repositoryformatversion":
		values = []string{"0", "1"}
	case "core.filemode", "core.bare", "core.ignorecase", "core.precomposeunicode", "core.symlinks":
		values = []string{"true", "false"}
	case "core.logallrefupdates":
		values = []string{"true", "false", "always"}
	case "extensions.objectformat":
		values = []string{"sha1", "sha256"}
	case "extensions.refstorage":
		values = []string{"files", "reftable"}
	}
	return slices.Contains(values, e.Value) && !e.Implicit
}

// newRemote judges a remote that was not there.
func newRemote(name string, entries []Entry) error {
	refuse := func(what string) error { return fmt.Errorf("the new remote %q %s", name, what) }
	if !plainName(name) {
		return refuse("has a name that git could take for an address")
	}
	urls := 0
	for _, e := range entries {
		switch {
		case e.Key == "url" && address(e.Value):
			urls++
		case e.Key == "url":
			return refuse("has an address that is neither https nor ssh")
		case e.Key == "fetch" && fetches(name, e.Value):
		case e.Key == "fetch":
			return refuse("fetches to other refs than its own")
		default:
			return refuse("has " + e.Key)
		}
	}
	if urls != 1 {
		// git takes the name of a remote without an address for its address.
		return refuse(fmt.Sprintf("has %d addresses", urls))
	}
	return nil
}

// branch judges what the run left of a branch's section.
func (c Change) branch(name string) error {
	now, was := section(c.After, "branch", name), section(c.Before, "branch", name)
	if slices.Equal(now, was) {
		return nil
	}
	refuse := func(what string) error { return fmt.Errorf("branch.%s.%s", name, what) }
	for _, other := range subsections(c.Before, "branch") {
		// A branch that was renamed or copied has what that one had.
		if len(was) == 0 && slices.EqualFunc(now, section(c.Before, "branch", other), func(a, b Entry) bool {
			b.Subsection = a.Subsection
			return a == b
		}) {
			return nil
		}
	}
	inert := map[string]func(string) error{
		"remote": func(v string) error {
			if len(values(was, "branch", name, "remote")) > 0 {
				return errors.New("remote is where the next push goes")
			}
			if v != "." && len(values(c.After, "remote", v, "url")) == 0 {
				return errors.New("remote names no remote")
			}
			return nil
		},
		"merge": func(v string) error {
			if !strings.HasPrefix(v, "refs/") || !ValidRef(v) {
				return errors.New("merge is not the name of a ref")
			}
			return nil
		},
		"rebase": func(v string) error {
			if !slices.Contains([]string{"true", "false", "merges"}, v) {
				return errors.New("rebase has a value of its own")
			}
			return nil
		},
		"description": func(string) error { return nil },
	}
	for _, key := range keys(now, was) {
		vNow, vWas := values(now, "branch", name, key), values(was, "branch", name, key)
		if slices.Equal(vNow, vWas) {
			continue
		}
		check := inert[key]
		if check == nil {
			return refuse(key + " was changed")
		}
		for _, e := range vNow {
			if e.Implicit {
				return refuse(key + " has no value")
			}
			if err := check(e.Value); err != nil {
				return refuse(err.Error())
			}
		}
	}
	return nil
}

func has(entries []Entry, name, sub string) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.Section == name && e.Subsection == sub })
}

func section(entries []Entry, name, sub string) []Entry {
	var found []Entry
	for _, e := range entries {
		if e.Section == name && e.Subsection == sub {
			found = append(found, e)
		}
	}
	return found
}

func values(entries []Entry, name, sub, key string) []Entry {
	return slices.DeleteFunc(section(entries, name, sub), func(e Entry) bool { return e.Key != key })
}

// subsections lists those of a section that have a variable, each once.
func subsections(entries []Entry, name string) []string {
	var found []string
	for _, e := range entries {
		if e.Section == name && e.Subsection != "" && !slices.Contains(found, e.Subsection) {
			found = append(found, e.Subsection)
		}
	}
	return found
}

func keys(lists ...[]Entry) []string {
	var found []string
	for _, e := range slices.Concat(lists...) {
		if !slices.Contains(found, e.Key) {
			found = append(found, e.Key)
		}
	}
	return found
}
