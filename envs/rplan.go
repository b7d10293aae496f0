package envs

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"airlock/internal/units"
)

// rRow is a package as a repository of R packages offers it, in the one version that it has.
type rRow struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Requires string `json:"requires"`
	MD5      string `json:"md5"`
	File     string `json:"file"`
	URL      string `json:"url"`
}

// rIndex is what a repository offers of a set, and what is there without it.
type rIndex struct {
	Packages []rRow `json:"packages"`
	System   []rRow `json:"system"`
}

// planR resolves R packages on top of an environment. A repository has one version of each package, and no
// hash that counts: what would be new is fetched for the plan, so that its sha256 is what is decided on.
func (c *Conversation) planR(ctx context.Context, h *rHost, env Environment, w Want, progress func(string)) (*Plan, error) {
	asked, err := parseAllIn(LanguageR, w.Requirements)
	if err != nil {
		return nil, err
	}
	p := &Plan{Want: w, Generation: env.Generation, runtime: h, index: bareURL(c.packages.R.Repo), now: env.Packages, Additive: true}
	if err := fitsKind(env, h); err != nil {
		if !w.Upgrade {
			return nil, err
		}
		asked, env = p.makeAnew(asked, env)
	}
	p.roots = mergeRoots(LanguageR, env.Roots, asked)
	p.Set = slices.Clone(env.Packages)
	if !w.Upgrade && !slices.ContainsFunc(asked, func(r Requirement) bool { return !fulfilled(r, env.Packages) }) {
		p.Already = true
		p.finish()
		return p, nil
	}
	if progress != nil {
		progress("resolving " + units.Counted(len(asked), "package"))
	}
	work, err := c.store.newWork()
	if err != nil {
		return nil, err
	}
	defer work.close()
	index, err := c.rIndex(ctx, h, work, asked, env)
	if err != nil {
		return nil, err
	}
	set, fresh, err := resolveR(index, asked, env, w.Upgrade)
	if err != nil {
		return nil, err
	}
	added := slices.DeleteFunc(slices.Clone(set), func(p Package) bool { return p.SHA256 != "" })
	// Names and versions are all that is decided on, and the index says them: what is refused is never fetched.
	grants, err := c.store.Grants()
	if err != nil {
		return nil, err
	}
	decision, err := decide(LanguageR, added, c.packages, grants, w.Environment)
	if err == nil {
		err = decision.refusal()
	}
	if err == nil {
		err = c.refusesToAsk(decision, p.section())
	}
	if err != nil {
		return nil, err
	}
	if err := c.fetchR(ctx, h, work, fresh, set, progress); err != nil {
		return nil, err
	}
	return p, c.judge(p, set)
}

// rIndex asks the repository about what is asked for and installed, with all that they require.
func (c *Conversation) rIndex(ctx context.Context, h *rHost, w *work, asked []Requirement, env Environment) (rIndex, error) {
	if err := checkNotOwn("packages.r.repo", c.packages.R.Repo); err != nil {
		return rIndex{}, err
	}
	lines := []string{c.packages.R.Repo}
	for _, r := range asked {
		lines = append(lines, r.Name)
	}
	for _, p := range env.Packages {
		lines = append(lines, p.Name)
	}
	step := h.step("resolve")
	step.Network = true
	var index rIndex
	_, err := h.drive(ctx, c, w, step, lines, &index)
	return index, err
}

// resolveR chooses what an environment would hold: what is installed stays as long as it satisfies what is
// required, the rest is the repository's. fresh are the rows of what has to be fetched. It is pure.
func resolveR(index rIndex, asked []Requirement, env Environment, upgrade bool) (set []Package, fresh []rRow, err error) {
	chosen := map[string]Package{}
	var choose func(r Requirement, by string, depth int) error
	choose = func(r Requirement, by string, depth int) error {
		if there, ok := chosen[r.Name]; ok && r.Contains(there.Version) {
			return nil
		}
		wanted := upgrade && by == ""
		if was, ok := env.find(r.Name); ok && r.Contains(was.Version) && !wanted && chosen[r.Name].Name == "" {
			chosen[r.Name] = was
			return requireAll(was.Requires, was.Name, depth, choose)
		}
		if by != "" && slices.ContainsFunc(index.System, func(s rRow) bool { return s.Name == r.Name && r.Contains(s.Version) }) {
			return nil // R brings it, or the host has it
		}
		i := slices.IndexFunc(index.Packages, func(row rRow) bool { return row.Name == r.Name })
		switch needed := neededBy(by); {
		case i < 0:
			return fmt.Errorf("the repository has no package %s for this R%s", r.Name, needed)
		case !r.Contains(index.Packages[i].Version):
			return fmt.Errorf("the repository has %s %s, and %s is asked for%s", r.Name, index.Packages[i].Version, r, needed)
		case depth > 200:
			return errors.New("the packages require each other without end")
		}
		row := index.Packages[i]
		requires, err := rFields(row.Requires)
		if err != nil || !rVersion().MatchString(row.Version) || !rFile().MatchString(row.File) {
			return fmt.Errorf("the repository's entry of %s can't be read", row.Name)
		}
		p := Package{Name: row.Name, Version: row.Version, Wheel: row.File}
		for _, need := range requires {
			if !slices.ContainsFunc(index.System, func(s rRow) bool { return s.Name == need.Name && need.Contains(s.Version) }) {
				p.Requires = append(p.Requires, need.String())
			}
		}
		if was, ok := env.find(p.Name); ok && was.Version == p.Version {
			p = was // the repository may offer another file of it by now; what is installed stays
		}
		chosen[r.Name] = p
		return requireAll(p.Requires, p.Name, depth, choose)
	}
	for _, r := range asked {
		if err := choose(r, "", 0); err != nil {
			return nil, nil, err
		}
	}
	for _, p := range env.Packages {
		if _, replaced := chosen[p.Name]; replaced {
			continue
		}
		if err := choose(Requirement{Name: p.Name, ofR: true}, "what is installed", 0); err != nil {
			return nil, nil, err
		}
	}
	for _, p := range chosen {
		set = append(set, p)
		if p.SHA256 == "" {
			i := slices.IndexFunc(index.Packages, func(row rRow) bool { return row.Name == p.Name })
			fresh = append(fresh, index.Packages[i])
		}
	}
	sortPackages(set)
	return set, fresh, nil
}

func requireAll(requires []string, by string, depth int, choose func(Requirement, string, int) error) error {
	for _, text := range requires {
		r, err := parseRRequirement(text)
		if err == nil {
			err = choose(r, by, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func neededBy(by string) string {
	if by == "" {
		return ""
	}
	return " (needed by " + by + ")"
}

// fetchR fetches what is new and fills in the hashes of the set.
func (c *Conversation) fetchR(ctx context.Context, h *rHost, w *work, fresh []rRow, set []Package, progress func(string)) error {
	if len(fresh) == 0 {
		return nil
	}
	if progress != nil {
		progress("fetching " + units.Counted(len(fresh), "package"))
	}
	var lines []string
	for _, row := range fresh {
		at, err := url.Parse(row.URL)
		if err != nil || at.Scheme != "https" && at.Scheme != "http" || strings.ContainsAny(row.URL, "\t\n") {
			return &DeniedError{Reason: fmt.Sprintf("%s is not from the repository", clip(row.Name, 80))}
		}
		lines = append(lines, row.URL+"\t"+row.File)
	}
	step := h.step("fetch")
	step.Network = true
	told := tellOf(progress, func() string { return fetching(filepath.Join(w.dir, step.Name), 0) })
	_, err := h.drive(ctx, c, w, step, lines, &struct{}{})
	told()
	if err != nil {
		return err
	}
	fetched, err := w.fetchedTo(step.Name)
	if err != nil {
		return err
	}
	for _, row := range fresh {
		i := slices.IndexFunc(set, func(p Package) bool { return p.Name == row.Name })
		file := filepath.Join(fetched, row.File)
		if err := checkMD5(file, row); err != nil {
			return err
		}
		if set[i].SHA256, set[i].Size, err = hashFile(file); err != nil {
			return fmt.Errorf("%s %s was not fetched: %w", row.Name, row.Version, err)
		}
		if err := c.store.keepWheel(file, set[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkMD5 compares a file to what the index says of it, which tells a torn file from a whole one and no more.
func checkMD5(file string, row rRow) error {
	if row.MD5 == "" {
		return nil
	}
	f, err := openRegular(file)
	if err != nil {
		return fmt.Errorf("%s %s was not fetched: %w", row.Name, row.Version, err)
	}
	defer f.Close()
	sum := md5.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != strings.ToLower(row.MD5) {
		return fmt.Errorf("%s is not the file that the repository's index names: its MD5 is %s", row.File, got)
	}
	return nil
}
