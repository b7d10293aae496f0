package envs

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"airlock/internal/units"
)

// Want is what a caller asks for.
type Want struct {
	// Environment is the name of the environment; Conversation asks for this conversation only, on top of
	// it.
	Environment  string
	Conversation bool
	// Language is "" for Python, or [LanguageR].
	Language     string
	Requirements []string
	// Upgrade lets packages that are there already be replaced by newer ones that the requirements take.
	Upgrade bool
	// Reason is the model's word for the user.
	Reason string
}

// Change is a package that an installation adds, replaces or removes.
type Change struct {
	Name    string
	Version string // "" if it is removed
	Was     string // "" if it is added
}

// Plan is a resolved set, and what it would change. Nothing was installed, and nothing of any package has
// run.
type Plan struct {
	Want       Want
	Generation int // of the environment that the plan is for
	// Set is all that the environment would hold above its base, Changes how that differs from now.
	Set     []Package
	Changes []Change
	// Additive is true if nothing that is there changes.
	Additive bool
	// Already is true if all that was asked for is there.
	Already bool
	// Skipped are requirements whose marker is false here.
	Skipped []string
	// Decision says what the user has to be asked.
	Decision Decision
	// Digest is of the set, its environment and its language.
	Digest string

	runtime runtime
	index   string // without a password
	base    Environment
	roots   []string
	now     []Package
	// approval is the id of the request by which the user permitted it; "" if nothing had to be asked, or it was asked
	// otherwise.
	approval string
}

// DeniedError says that a set holds what the configuration refuses.
type DeniedError struct{ Reason string }

// Error implements error.
func (e *DeniedError) Error() string { return e.Reason }

// plan resolves what is wanted on top of an environment.
func (c *Conversation) plan(ctx context.Context, py *python, base, env Environment, w Want, progress func(string)) (*Plan, error) {
	wanted, err := parseAll(w.Requirements)
	if err != nil {
		return nil, err
	}
	if err := fitsKind(env, py); err != nil {
		return nil, err
	}
	p := &Plan{Want: w, Generation: env.Generation, runtime: py, index: c.Index(), base: base, now: env.Packages, Additive: true}
	var asked []Requirement
	for _, r := range wanted {
		if r.Marker.Holds(py.Markers) {
			asked = append(asked, r)
		} else {
			p.Skipped = append(p.Skipped, r.String())
		}
	}
	p.roots = mergeRoots(LanguagePython, env.Roots, asked)
	p.Set = slices.Clone(env.Packages)
	present := slices.Concat(base.Packages, env.Packages)
	if len(asked) == 0 || !w.Upgrade && !slices.ContainsFunc(asked, func(r Requirement) bool { return !fulfilled(r, present) }) {
		p.Already = len(asked) > 0
		p.finish()
		return p, nil
	}
	if progress != nil {
		progress("resolving " + units.Counted(len(asked), "requirement"))
	}
	set, err := c.resolveBoth(ctx, py, base, env, asked, p, progress)
	if err != nil {
		return nil, err
	}
	return p, c.judge(p, set)
}

// judge fills in what a resolved set means. The error is a [*DeniedError] where the configuration refuses it.
func (c *Conversation) judge(p *Plan, set []Package) error {
	p.Set = set
	p.Changes = changes(p.now, set)
	p.Additive = !slices.ContainsFunc(p.Changes, func(c Change) bool { return c.Was != "" })
	p.Already = len(p.Changes) == 0
	grants, err := c.store.Grants()
	if err != nil {
		return err
	}
	p.Decision, err = decide(p.runtime.language(), p.added(), c.packages, grants, p.Want.Environment)
	if err != nil {
		return err
	}
	p.finish()
	return p.Decision.refusal()
}

// refusal is a [*DeniedError] if the configuration refuses any package of the set.
func (d Decision) refusal() error {
	if len(d.Denied) == 0 {
		return nil
	}
	return &DeniedError{Reason: "the set holds what is refused here: " + strings.Join(d.Denied, ", ")}
}

// fitsKind reports an environment whose layers are for another interpreter.
func fitsKind(env Environment, of runtime) error {
	if env.Python == "" || env.Python == of.kind() {
		return nil
	}
	if of.language() == LanguageR {
		return fmt.Errorf("the environment %q was made for another R (%s; now it is %s); take another environment", env.Name, env.Python, of.kind())
	}
	return fmt.Errorf("the environment %q was made for another Python (%s; now it is %s); take another environment, or set python.interpreter", env.Name, env.Python, of.kind())
}

// finish sorts the set and names it.
func (p *Plan) finish() {
	sortPackages(p.Set)
	p.Digest = digestOf(struct {
		Environment  string
		Conversation bool
		Language     string
		Python       string
		Lock         []string
	}{p.Want.Environment, p.Want.Conversation, p.runtime.language(), p.runtime.kind(), lockLines(p.Set)})
}

// added are the packages of the set that are not there yet as they are.
func (p *Plan) added() []Package {
	var added []Package
	for _, a := range p.Set {
		if was, ok := find(p.now, a.Name); !ok || was.SHA256 != a.SHA256 {
			added = append(added, a)
		}
	}
	return added
}

// resolveBoth resolves first with everything that is installed pinned, which is additive by construction,
// and only where that can't be, without.
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
	if first == nil || len(env.Packages) == 0 {
		return set, first
	}
	var failed *StepError
	if !errors.As(first, &failed) || failed.Outcome.Ended != "" || len(failed.Outcome.Refused) > 0 {
		return nil, first
	}
	set, err := c.resolve(ctx, py, base, env, slices.Concat(always, p.roots), progress)
	if err != nil && errors.As(err, &failed) {
		return nil, fmt.Errorf("%w; with what is installed (%s)", err, shortSet(env.Packages))
	}
	return set, err
}

// resolve has pip find a set for requirements, and checks every word of its report.
func (c *Conversation) resolve(ctx context.Context, py *python, base, env Environment, lines []string, progress func(string)) ([]Package, error) {
	if py.Pip == "" {
		return nil, errNoPip
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
			URL    string `json:"url"`
			Direct bool   `json:"direct"`
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
		set = append(set, p)
	}
	sortPackages(set)
	return set, validateAll(set)
}

// withCert shows a step the certificates of a private index.
func (c *Conversation) withCert(step *Step, request *driverRequest) {
	if c.packages.Cert == "" {
		return
	}
	step.Binds = append(step.Binds, Bind{Source: c.packages.Cert, Target: certPath})
	request.Cert = certPath
}

// fulfilled reports whether a requirement is satisfied by what is there. One with extras asks for more
// than a version, which only resolving tells.
func fulfilled(r Requirement, present []Package) bool {
	p, ok := find(present, r.Name)
	return ok && len(r.Extras) == 0 && r.Contains(p.Version)
}

// mergeRoots adds requirements to those that were asked for before. A newer one takes the place of those
// for the same package.
func mergeRoots(language string, roots []string, asked []Requirement) []string {
	var merged []string
	for _, text := range roots {
		r, err := parseIn(language, text)
		if err == nil && !slices.ContainsFunc(asked, func(a Requirement) bool { return a.Name == r.Name }) {
			merged = append(merged, text)
		}
	}
	for _, a := range asked {
		merged = append(merged, a.String())
	}
	return merged
}

// changes compares two sets.
func changes(now, set []Package) []Change {
	var all []Change
	for _, p := range set {
		was, ok := find(now, p.Name)
		if !ok || was.SHA256 != p.SHA256 {
			all = append(all, Change{Name: p.Name, Version: p.Version, Was: was.Version})
		}
	}
	for _, p := range now {
		if _, ok := find(set, p.Name); !ok {
			all = append(all, Change{Name: p.Name, Was: p.Version})
		}
	}
	return all
}

func shortSet(packages []Package) string {
	var names []string
	for _, p := range packages[:min(len(packages), 12)] {
		names = append(names, p.Name+" "+p.Version)
	}
	text := strings.Join(names, ", ")
	if more := len(packages) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Present are the packages that were asked for and are there already.
func (p *Plan) Present() []Package {
	var present []Package
	asked, _ := parseAllIn(p.runtime.language(), p.Want.Requirements)
	for _, r := range asked {
		if there, ok := find(slices.Concat(p.base.Packages, p.Set), r.Name); ok && !slices.ContainsFunc(present, func(x Package) bool { return x.Name == there.Name }) {
			present = append(present, there)
		}
	}
	return present
}
