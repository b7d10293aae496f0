package envs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options are what a [Conversation] is made of.
type Options struct {
	Store     *Store
	Installer Installer
	// Find says where the interpreter of environments is looked for. Its Workspace must be "": what a run
	// can write decides nothing of what is installed.
	Find     FindOptions
	Packages Packages
	Python   Python
	// MostBytes bounds what one wheel may unpack to.
	MostBytes int64
}

// Conversation is the environments as one server process uses them: which one its runs have, and what it
// has on top of it. It is safe for concurrent use. Close it.
type Conversation struct {
	store     *Store
	installer Installer
	find      FindOptions
	packages  Packages
	config    Python
	mostBytes int64

	id   string
	lock *fileLock

	mu    sync.Mutex
	py    *python
	bound binding
}

// binding is the document of a conversation.
type binding struct {
	// Environment is the one that runs have; Chosen is true if it was asked for in this conversation.
	Environment string `json:"environment"`
	Chosen      bool   `json:"chosen,omitempty"`
	// Extra is what the conversation has on top of it, or, if Whole, in place of it.
	Extra Environment `json:"extra"`
	Whole bool        `json:"whole,omitempty"`
}

// Validate implements document.
func (b *binding) Validate() error {
	return errors.Join(CheckName(b.Environment), b.Extra.Validate())
}

// keepUnused is how long what nothing names any more is kept: the next conversation may ask for it again.
const keepUnused = 30 * 24 * time.Hour

// Begin begins a conversation, and removes what dead ones left.
func Begin(ctx context.Context, o Options) (*Conversation, error) {
	if o.Find.Workspace != "" {
		return nil, errors.New("bug: the workspace would choose the interpreter of environments")
	}
	c := &Conversation{
		store: o.Store, installer: o.Installer, find: o.Find, packages: o.Packages, config: o.Python, mostBytes: o.MostBytes, id: newID(),
		bound: binding{Environment: DefaultEnvironment, Extra: Environment{Name: DefaultEnvironment, Language: "python"}},
	}
	if c.mostBytes <= 0 {
		c.mostBytes = 16 << 30
	}
	_, _ = c.store.Collect(ctx, keepUnused, false) // what it could not remove is tried again
	var err error
	c.lock, err = tryLock(c.store.path("conversations", c.id+".lock"), false)
	return c, err
}

// Close ends the conversation: what it had for itself is gone.
func (c *Conversation) Close() error {
	_ = os.Remove(c.store.path("conversations", c.id+".json"))
	_ = os.Remove(c.store.path("conversations", c.id+".lock"))
	c.lock.unlock()
	return nil
}

// Index is the address of the index without what may be a password.
func (c *Conversation) Index() string { return bareURL(c.packages.Index) }

// Store is where the environments are.
func (c *Conversation) Store() *Store { return c.store }

// interpreter finds the interpreter and asks it what it is, once.
func (c *Conversation) interpreter(ctx context.Context) (*python, error) {
	found, err := FindPython(c.find)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	py := c.py
	c.mu.Unlock()
	if py != nil && py.found.Path == found.Path {
		return py, nil
	}
	if py, err = c.store.probe(ctx, c.installer, found); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.py = py
	c.mu.Unlock()
	return py, nil
}

// Current is the environment of the conversation's runs. chosen is true if the conversation asked for it.
func (c *Conversation) Current() (name string, chosen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bound.Environment, c.bound.Chosen
}

// Use makes an environment that of the conversation's runs. What the conversation had on top of another one
// is gone.
func (c *Conversation) Use(name string) error {
	if _, err := c.store.Environment(name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.bound
	if b.Environment != name {
		b = binding{Environment: name, Extra: Environment{Name: name, Language: "python"}}
	}
	b.Chosen = true
	return c.bind(b)
}

// bind changes the binding. c.mu is held.
func (c *Conversation) bind(b binding) error {
	if err := writeDocument(c.store.path("conversations", c.id+".json"), &b); err != nil {
		return err
	}
	c.bound = b
	return nil
}

// Effective is an environment as this conversation sees it, above the base.
func (c *Conversation) Effective(name string) (Environment, error) {
	env, err := c.store.Environment(name)
	if err != nil {
		return env, err
	}
	c.mu.Lock()
	b := c.bound
	c.mu.Unlock()
	if b.Environment != name || len(b.Extra.Packages) == 0 && !b.Whole {
		return env, nil
	}
	if b.Whole {
		b.Extra.Generation = env.Generation
		return b.Extra, nil
	}
	for _, p := range b.Extra.Packages {
		if was, ok := env.find(p.Name); !ok {
			env.Packages = append(slices.Clone(env.Packages), p)
		} else if was.SHA256 != p.SHA256 {
			return env, fmt.Errorf("%s %s, which this conversation asked for, is %s in the environment %q by now; ask again with python_env", p.Name, p.Version, was.Version, name)
		}
	}
	sortPackages(env.Packages)
	env.Roots = slices.Concat(env.Roots, b.Extra.Roots)
	env.Layers = slices.Concat(env.Layers, b.Extra.Layers)
	if env.Python == "" {
		env.Python = b.Extra.Python
	}
	return env, nil
}

// Extra lists what the conversation has beside what its environment holds.
func (c *Conversation) Extra() []Package {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bound.Extra.Packages)
}

// Mount gives what runs of an environment see at /env; nil if that is nothing. Release it after the run.
func (c *Conversation) Mount(ctx context.Context, name string) (*Tree, error) {
	env, err := c.Effective(name)
	if err != nil {
		return nil, err
	}
	if len(env.Packages) == 0 && len(c.config.Base) == 0 && len(c.config.Deps) == 0 {
		return nil, nil
	}
	py, err := c.interpreter(ctx)
	if err != nil {
		return nil, err
	}
	base, err := c.base(ctx, py, nil)
	if err != nil {
		return nil, err
	}
	if env.Python != "" && env.Python != py.kind() {
		return nil, fmt.Errorf("the environment %q was made for another Python (%s; now it is %s)", env.Name, env.Python, py.kind())
	}
	return c.store.compose(ctx, py, slices.Concat(base.Layers, env.Layers), slices.Concat(base.Packages, env.Packages), c.config.Deps)
}

// base returns the environment of python.base, and installs it if it is not what the configuration says.
// The person wrote that down: it needs no question.
func (c *Conversation) base(ctx context.Context, py *python, progress func(string)) (Environment, error) {
	none := Environment{Name: baseName, Language: "python"}
	if len(c.config.Base) == 0 {
		return none, nil
	}
	wanted, err := parseAll(c.config.Base)
	if err != nil {
		return none, err
	}
	now, err := c.store.Environment(baseName)
	if err != nil {
		return none, err
	}
	if now.Python == py.kind() && slices.Equal(now.Roots, mergeRoots(nil, wanted)) {
		return now, nil
	}
	fresh := none
	fresh.Generation = now.Generation
	p, err := c.plan(ctx, py, none, fresh, Want{Environment: baseName, Requirements: c.config.Base}, progress)
	if err == nil {
		_, err = c.applyTo(ctx, p, fresh, progress)
	}
	if err != nil && !errors.Is(err, ErrChanged) { // by another server, to the same
		return none, fmt.Errorf("python.base: %w", err)
	}
	return c.store.Environment(baseName)
}

// Plan resolves what is wanted and says what it would change. It installs nothing. The error is a
// [*DeniedError] where the configuration refuses it, whatever the user says.
func (c *Conversation) Plan(ctx context.Context, w Want, progress func(string)) (*Plan, error) {
	if err := CheckName(w.Environment); err != nil {
		return nil, err
	}
	if c.packages.Approve == "never" {
		return nil, &DeniedError{Reason: `nothing is installed here: packages.approve is "never"`}
	}
	py, err := c.interpreter(ctx)
	if err != nil {
		return nil, err
	}
	base, err := c.base(ctx, py, progress)
	if err != nil {
		return nil, err
	}
	env, err := c.store.Environment(w.Environment)
	if w.Conversation {
		env, err = c.Effective(w.Environment)
	}
	if err != nil {
		return nil, err
	}
	p, err := c.plan(ctx, py, base, env, w, progress)
	if err != nil {
		return p, err
	}
	if len(p.Decision.Ask) > 0 && c.packages.Approve == "allowlist" {
		return p, &DeniedError{Reason: fmt.Sprintf(`%s is not on packages.allow, and packages.approve is "allowlist"; the user can add it to the user file`, shortSet(p.Decision.Ask))}
	}
	return p, nil
}

// Permitted reports whether a plan needs no question, or was approved on the command line; that approval is
// then used up. A set that the user denied is a [*DeniedError].
func (c *Conversation) Permitted(ctx context.Context, p *Plan) (bool, error) {
	if len(p.Decision.Ask) == 0 {
		return true, nil
	}
	all, err := c.store.Requests()
	if err != nil {
		return false, err
	}
	for _, r := range all {
		if r.Digest == p.Digest && r.State == Denied {
			return false, &DeniedError{Reason: fmt.Sprintf("the user denied exactly this set (request %s)", r.ID)}
		}
	}
	return c.store.takeApproval(ctx, p.Digest)
}

// Leave leaves a request for the user's answer, or returns the one that waits for this plan already.
func (c *Conversation) Leave(ctx context.Context, p *Plan) (Request, error) {
	reason := []rune(p.Want.Reason)
	return c.store.Leave(ctx, Request{
		Environment: p.Want.Environment, Conversation: p.Want.Conversation, Language: "python", Index: c.Index(),
		Asked: p.Want.Requirements, Question: p.Question(c.packages.Index), Reason: string(reason[:min(len(reason), maxReason)]),
		Names: p.Asked(), Digest: p.Digest,
	})
}

// Asked names the packages that the user is asked about.
func (p *Plan) Asked() []string {
	names := make([]string, len(p.Decision.Ask))
	for i, a := range p.Decision.Ask {
		names[i] = a.Name
	}
	return names
}

// ErrChanged says that the environment is not the one any more that a plan was made for.
var ErrChanged = errors.New("the environment was changed by someone else meanwhile")

// Installed is the outcome of an installation.
type Installed struct {
	Changes  []Change
	Additive bool
	// Missing are shared libraries that modules need and the host lacks.
	Missing []string
}

// Apply installs a plan that is permitted, and switches the environment to it. Until then nothing changed,
// whatever ends it.
func (c *Conversation) Apply(ctx context.Context, p *Plan, progress func(string)) (Installed, error) {
	env, err := c.store.Environment(p.Want.Environment)
	if err != nil {
		return Installed{}, err
	}
	if p.Want.Conversation {
		return c.applyHere(ctx, p, progress)
	}
	return c.applyTo(ctx, p, env, progress)
}

// applyTo installs into a named environment.
func (c *Conversation) applyTo(ctx context.Context, p *Plan, env Environment, progress func(string)) (Installed, error) {
	file := c.store.environmentFile(env.Name)
	held, err := lock(ctx, strings.TrimSuffix(file, ".json")+".lock", false)
	if err != nil {
		return Installed{}, err
	}
	defer held.unlock()
	if now, err := c.store.Environment(env.Name); err != nil {
		return Installed{}, err
	} else if now.Generation != p.Generation {
		return Installed{}, ErrChanged
	}
	next, installed, err := c.build(ctx, p, env, progress)
	if err != nil {
		return Installed{}, err
	}
	next.Generation = p.Generation + 1
	all, err := c.store.lock(ctx)
	if err != nil {
		return Installed{}, err
	}
	defer all.unlock()
	return installed, writeDocument(file, &next)
}

// applyHere installs for this conversation only.
func (c *Conversation) applyHere(ctx context.Context, p *Plan, progress func(string)) (Installed, error) {
	env, err := c.Effective(p.Want.Environment)
	if err != nil {
		return Installed{}, err
	}
	if env.Generation != p.Generation || !slices.EqualFunc(env.Packages, p.now, func(a, b Package) bool { return a.SHA256 == b.SHA256 }) {
		return Installed{}, ErrChanged
	}
	next, installed, err := c.build(ctx, p, env, progress)
	if err != nil {
		return Installed{}, err
	}
	named, err := c.store.Environment(p.Want.Environment)
	if err != nil {
		return Installed{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := binding{Environment: p.Want.Environment, Chosen: true, Extra: next, Whole: true}
	if wasWhole := c.bound.Whole && c.bound.Environment == named.Name; installed.Additive && !wasWhole {
		// On top of the named environment, so that what is installed there later is seen here.
		b.Whole = false
		b.Extra.Layers = next.Layers[len(named.Layers):]
		b.Extra.Roots = next.Roots[len(named.Roots):]
		b.Extra.Packages = slices.DeleteFunc(slices.Clone(next.Packages), func(x Package) bool {
			_, there := named.find(x.Name)
			return there
		})
	}
	return installed, c.bind(b)
}

// build makes the layers and the tree of a plan and verifies the whole. It changes no environment.
func (c *Conversation) build(ctx context.Context, p *Plan, env Environment, progress func(string)) (Environment, Installed, error) {
	next := Environment{Name: env.Name, Language: "python", Python: p.python.kind(), Roots: p.roots, Layers: slices.Clone(env.Layers), Packages: slices.Clone(p.Set)}
	made := p.added()
	if !p.Additive {
		// Of a layer nothing can be taken away: the whole set is one.
		next.Layers, made = nil, next.Packages
	}
	installed := Installed{Changes: p.Changes, Additive: p.Additive}
	if len(made) > 0 {
		digest, l, err := c.makeLayer(ctx, p.python, made, progress)
		if err != nil {
			return next, installed, err
		}
		if !slices.Contains(next.Layers, digest) {
			next.Layers = append(next.Layers, digest)
		}
		installed.Missing = l.Missing
		for i, pkg := range next.Packages {
			if of, ok := find(l.Packages, pkg.Name); ok {
				next.Packages[i].Requires = of.Requires // the wheel's own word
			}
		}
	}
	set := slices.Concat(p.base.Packages, next.Packages)
	if broken := verify(set, p.python.Markers); len(broken) > 0 {
		return next, installed, fmt.Errorf("the packages do not fit together, and nothing was changed: %s", strings.Join(broken[:min(len(broken), 8)], "; "))
	}
	if progress != nil {
		progress("composing the environment")
	}
	tree, err := c.store.compose(ctx, p.python, slices.Concat(p.base.Layers, next.Layers), set, c.config.Deps)
	tree.Release()
	return next, installed, err
}

// Python is where runs see the interpreter of an environment.
func (t *Tree) Python() string { return filepath.Join(mountPoint, "bin", "python") }

// MountPoint is where runs see a tree.
func (t *Tree) MountPoint() string { return mountPoint }
