package envs

import (
	"context"
	"fmt"
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

	again []string // what the conversation had asked for, and does not have any more
}

// Change is a package that an installation adds, replaces or removes.
type Change struct {
	Name    string
	Version string // "" if it is removed
	Was     string // "" if it is added; the same version where it is made anew for another interpreter
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
	// Skipped are requirements whose marker is false here, NoExtras extras that were asked for and that no package
	// has, as "name[extra]".
	Skipped, NoExtras []string
	// Decision says what the user has to be asked.
	Decision Decision
	// Digest is of the set, its environment and its language.
	Digest string

	runtime runtime
	index   string // without a password
	base    Environment
	roots   []string
	now     []Package
	anew    bool // what is there is for another interpreter, and is replaced as a whole
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
	wanted = withOthers(LanguagePython, wanted, w.again)
	p := &Plan{Want: w, Generation: env.Generation, runtime: py, index: c.Index(), base: base, now: env.Packages, Additive: true}
	if err := fitsKind(env, py); err != nil {
		if !w.Upgrade {
			return nil, err
		}
		wanted, env = p.makeAnew(wanted, env)
	}
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
	p.NoExtras = noExtras(asked, set)
	return p, c.judge(p, set)
}

// noExtras are the extras of requirements that the packages of a set that was just resolved don't have: an installer
// does without them.
func noExtras(asked []Requirement, set []Package) []string {
	var missing []string
	for _, r := range asked {
		p, ok := find(set, r.Name)
		for _, extra := range r.Extras {
			if ok && !slices.Contains(p.extras, extra) {
				missing = append(missing, r.Name+"["+extra+"]")
			}
		}
	}
	return missing
}

// withOthers adds to requirements those of a list, which were valid once, that are for other packages.
func withOthers(language string, wanted []Requirement, others []string) []Requirement {
	asked := len(wanted)
	for _, text := range others {
		r, err := parseIn(language, text)
		if err == nil && !slices.ContainsFunc(wanted[:asked], func(n Requirement) bool { return n.Name == r.Name }) {
			wanted = append(wanted, r)
		}
	}
	return wanted
}

// makeAnew has the plan make an environment of another interpreter for this one: nothing that it holds can stay, and
// all that it was asked for is wanted once more.
func (p *Plan) makeAnew(wanted []Requirement, env Environment) ([]Requirement, Environment) {
	p.anew = true
	wanted = withOthers(env.Language, wanted, env.Roots)
	env.Packages, env.Layers = nil, nil
	return wanted, env
}

// judge fills in what a resolved set means. The error is a [*DeniedError] where the configuration refuses it.
func (c *Conversation) judge(p *Plan, set []Package) error {
	p.Set = set
	p.Changes = changes(p.now, set)
	if p.anew {
		for _, s := range set {
			if was, ok := find(p.now, s.Name); ok && was.SHA256 == s.SHA256 {
				p.Changes = append(p.Changes, Change{Name: s.Name, Version: s.Version, Was: s.Version})
			}
		}
	}
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
		return fmt.Errorf("the environment %q was made for another R (%s; now it is %s); package_install with upgrade makes it anew, or take another environment", env.Name, env.Python, of.kind())
	}
	return fmt.Errorf("the environment %q was made for another Python (%s; now it is %s); package_install with upgrade makes it anew, or take another environment, or set python.interpreter", env.Name, env.Python, of.kind())
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
// for the same package, with the extras that these had: what was asked for once is not taken away by that.
func mergeRoots(language string, roots []string, asked []Requirement) []string {
	var merged []string
	asked = slices.Clone(asked)
	for _, text := range roots {
		r, err := parseIn(language, text)
		if err != nil {
			continue
		}
		i := slices.IndexFunc(asked, func(a Requirement) bool { return a.Name == r.Name })
		if i < 0 {
			merged = append(merged, text)
			continue
		}
		extras := slices.Concat(asked[i].Extras, r.Extras)
		slices.Sort(extras)
		asked[i].Extras = slices.Compact(extras)
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
