package envs

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
)

// resolveBoth resolves first with everything that is installed pinned, which is additive by construction, and only
// where that can't be, or where it leaves an upgrade behind, without; of that it keeps what is installed where that fits.
func (c *Conversation) resolveBoth(ctx context.Context, py *python, base, env Environment, asked []Requirement, p *Plan, progress func(string)) ([]Package, error) {
	upgraded := func(name string) bool {
		return p.Want.Upgrade && slices.ContainsFunc(asked, func(r Requirement) bool { return r.Name == name })
	}
	var pins, always []string
	for _, b := range base.Packages {
		always = append(always, b.Name+"=="+b.Version) // the base is never changed
	}
	for _, i := range env.Packages {
		if !upgraded(i.Name) {
			pins = append(pins, i.Name+"=="+i.Version)
		}
	}
	lines := make([]string, len(asked))
	for i, r := range asked {
		lines[i] = r.String()
	}
	set, first := c.resolve(ctx, py, base, env, slices.Concat(always, pins, lines), progress)
	if first == nil && p.Want.Upgrade && len(pins) > 0 {
		return c.newer(ctx, py, base, env, asked, slices.Concat(always, p.roots), set, progress)
	}
	if first == nil {
		return set, nil
	}
	if len(env.Packages) == 0 {
		return nil, besides(first, base, env)
	}
	if !unresolvable(first) {
		return nil, first
	}
	rooted := slices.Concat(always, p.roots)
	set, err := c.resolve(ctx, py, base, env, rooted, progress)
	if err != nil {
		return nil, besides(err, base, env)
	}
	return c.narrow(ctx, py, base, env, asked, rooted, set, progress)
}

// besides adds to the failure of a resolution what is there, which may be what stands in its way.
func besides(err error, base, env Environment) error {
	if failed := new(StepError); !errors.As(err, &failed) || len(failed.Outcome.Unreached) > 0 {
		return err
	}
	if len(env.Packages) > 0 {
		err = fmt.Errorf("%w; with what is installed (%s)", err, shortSet(env.Packages))
	}
	if len(base.Packages) > 0 {
		err = fmt.Errorf("%w; with python.base, which no installation changes (%s)", err, shortSet(base.Packages))
	}
	return err
}

// unresolvable reports whether a resolution failed because there is no such set, and not because its step was ended or an
// index was refused or not reached.
func unresolvable(err error) bool {
	failed := new(StepError)
	return errors.As(err, &failed) && failed.Outcome.Ended == "" && len(failed.Outcome.Refused)+len(failed.Outcome.Unreached) == 0
}

// newer gives a set in which what is asked for is newer than in the given one and all else stays, or the given one if there
// is none. lines are what has to hold.
func (c *Conversation) newer(ctx context.Context, py *python, base, env Environment, asked []Requirement, lines []string, set []Package, progress func(string)) ([]Package, error) {
	wide, err := c.resolve(ctx, py, base, env, lines, progress)
	if unresolvable(err) {
		return set, nil // there are none
	}
	if err != nil || !isNewer(wide, set, asked) {
		return set, err
	}
	narrow, err := c.narrow(ctx, py, base, env, asked, lines, wide, progress)
	if err == nil && isNewer(wide, narrow, asked) {
		return wide, nil
	}
	return narrow, err
}

// narrow gives back to a set that was resolved without pins what is installed, as far as that fits: what has nothing
// to do with what is asked for does not change.
func (c *Conversation) narrow(ctx context.Context, py *python, base, env Environment, asked []Requirement, lines []string, wide []Package, progress func(string)) ([]Package, error) {
	var pins []string
	for _, i := range fitting(env.Packages, slices.Concat(base.Packages, wide), asked, py.Markers) {
		pins = append(pins, i.Name+"=="+i.Version)
	}
	if len(pins) == 0 {
		return wide, nil
	}
	set, err := c.resolve(ctx, py, base, env, slices.Concat(lines, pins), progress)
	if unresolvable(err) {
		return wide, nil // what extras require is not in what packages say of themselves
	}
	return set, err
}

// fitting are those of the installed packages, but for what is asked for, that a set can have in place of its own, or
// beside them, all together. It is pure.
func fitting(installed, set []Package, asked []Requirement, markers map[string]string) []Package {
	kept := slices.DeleteFunc(slices.Clone(installed), func(i Package) bool {
		return slices.ContainsFunc(asked, func(r Requirement) bool { return r.Name == i.Name })
	})
	for {
		mixed := slices.Clone(kept)
		for _, p := range set {
			if _, ok := find(kept, p.Name); !ok {
				mixed = append(mixed, p)
			}
		}
		bad := map[string]bool{}
		unsatisfied(mixed, markers, func(p Package, needed string, _ error) {
			if _, ok := find(kept, needed); ok {
				if _, both := find(kept, p.Name); !both {
					bad[needed] = true // what is new wants another one
					return
				}
			}
			bad[p.Name] = true
		})
		before := len(kept)
		kept = slices.DeleteFunc(kept, func(p Package) bool { return bad[p.Name] })
		if len(kept) == before {
			return kept
		}
	}
}

// isNewer reports whether one set has any of what is asked for in a newer version than another.
func isNewer(set, than []Package, asked []Requirement) bool {
	return slices.ContainsFunc(asked, func(r Requirement) bool {
		a, inSet := find(set, r.Name)
		b, inOther := find(than, r.Name)
		v, errV := ParseVersion(a.Version)
		w, errW := ParseVersion(b.Version)
		return inSet && inOther && errV == nil && errW == nil && v.Compare(w) > 0
	})
}

// resolve has pip find a set for requirements, and checks every word of its report.
func (c *Conversation) resolve(ctx context.Context, py *python, base, env Environment, lines []string, progress func(string)) ([]Package, error) {
	if err := py.withPip(); err != nil {
		return nil, err
	}
	if err := checkNotOwn("packages.index", c.packages.Index); err != nil {
		return nil, err
	}
	w, err := c.store.newWork()
	if err != nil {
		return nil, err
	}
	defer w.close()
	request := driverRequest{Pip: py.Pip, Index: c.packages.Index}
	for _, p := range slices.Concat(base.Packages, env.Packages) {
		request.Have = append(request.Have, p.SHA256)
	}
	step := py.step("resolve")
	step.Network = true
	c.withCert(&step, &request)
	var report struct {
		Status   int `json:"status"`
		Packages []struct {
			Package
			URL    string   `json:"url"`
			Direct bool     `json:"direct"`
			Extras []string `json:"extras"`
		} `json:"packages"`
	}
	told := tellOf(progress, func() string { return resolving(filepath.Join(w.dir, step.Name)) })
	out, err := c.store.drivePython(ctx, c.installer, w, step, request, lines, &report)
	told()
	if err != nil {
		return nil, err
	}
	if report.Status != 0 {
		return nil, &StepError{Step: "resolve", Outcome: out}
	}
	var set []Package
	for _, r := range report.Packages {
		p := r.Package
		p.Name = NormalizeName(p.Name)
		if r.Direct {
			return nil, &DeniedError{Reason: fmt.Sprintf("%s is not from the index: some package requires it from an address of its own", clip(p.Name, 80))}
		}
		at, err := url.Parse(r.URL)
		if err != nil || at.Scheme != "https" && at.Scheme != "http" {
			return nil, &DeniedError{Reason: fmt.Sprintf("%s is not from the index", clip(p.Name, 80))}
		}
		p.Wheel = path.Base(at.Path)
		if err := p.validate(); err != nil {
			return nil, fmt.Errorf("the index offers what can't be installed: %w", err)
		}
		if b, ok := find(base.Packages, p.Name); ok {
			if b.Version != p.Version {
				return nil, fmt.Errorf("bug: %s %s would replace the base's %s", p.Name, p.Version, b.Version)
			}
			continue // it is there already
		}
		// The index may offer another file of the same version by now; what is installed stays.
		if was, ok := env.find(p.Name); ok && was.Version == p.Version {
			p = was
		}
		for _, extra := range r.Extras {
			p.extras = append(p.extras, NormalizeName(extra))
		}
		set = append(set, p)
	}
	sortPackages(set)
	return set, validateAll(set)
}
