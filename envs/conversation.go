package envs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"airlock/internal/filelock"
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
	lock *filelock.Lock
	here chan struct{} // holds one while something is installed for this conversation only

	mu    sync.Mutex
	py    *python
	rHost *rHost
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

// more reports whether the conversation has anything beside the named environment.
func (b *binding) more() bool { return len(b.Extra.Packages) > 0 || b.Whole }

// keepUnused is how long what nothing names any more is kept: the next conversation may ask for it again.
const keepUnused = 30 * 24 * time.Hour

// Begin begins a conversation, and removes what dead ones left.
func Begin(ctx context.Context, o Options) (*Conversation, error) {
	if o.Find.Workspace != "" {
		return nil, errors.New("bug: the workspace would choose the interpreter of environments")
	}
	c := &Conversation{
		store: o.Store, installer: o.Installer, find: o.Find, packages: o.Packages, config: o.Python, mostBytes: o.MostBytes, id: newID(), here: make(chan struct{}, 1),
		bound: binding{Environment: DefaultEnvironment, Extra: Environment{Name: DefaultEnvironment, Language: "python"}},
	}
	if c.mostBytes <= 0 {
		c.mostBytes = 16 << 30
	}
	_, _ = c.store.Collect(ctx, keepUnused, false) // what it could not remove is tried again
	var err error
	// Somebody else who begins one may look whether it is held just before it is.
	c.lock, err = filelock.Wait(ctx, c.store.path("conversations", c.id+".lock"), filelock.Alone)
	return c, err
}

// Close ends the conversation: what it had for itself is gone.
func (c *Conversation) Close() error {
	_ = os.Remove(c.store.path("conversations", c.id+".json"))
	_ = os.Remove(c.store.path("conversations", c.id+".lock"))
	c.lock.Unlock()
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
// is gone; and what it has on top of this one, if that does not fit any more. dropped is true if there was any.
func (c *Conversation) Use(ctx context.Context, name string) (dropped bool, err error) {
	if _, err := c.store.Environment(name); err != nil {
		return false, err
	}
	c.mu.Lock()
	had := c.bound
	c.mu.Unlock()
	fits := had.Environment == name
	if fits && had.more() {
		tree, err := c.Mount(ctx, name)
		tree.Release()
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		fits = err == nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.bound
	if !fits {
		dropped = b.more()
		b = binding{Environment: name, Extra: Environment{Name: name, Language: "python"}}
	}
	b.Chosen = true
	return dropped, c.bind(b)
}

// bind changes the binding. c.mu is held.
func (c *Conversation) bind(b binding) error {
	if err := writeDocument(c.store.path("conversations", c.id+".json"), &b); err != nil {
		return err
	}
	c.bound = b
	return nil
}

// StaleError says that what a conversation has on top of an environment does not go with what that holds by now.
type StaleError struct {
	Environment string
	Broken      []string
}

// Error implements error.
func (e *StaleError) Error() string {
	return fmt.Sprintf("what this conversation asked for does not go with the environment %q any more: %s; ask again with python_env, or give it up with its action \"use\"",
		e.Environment, strings.Join(e.Broken[:min(len(e.Broken), 8)], "; "))
}

// standing is the environment that an installation for this conversation builds on: what it sees, or, where what it
// has does not fit any more, the named environment. again is then what it had asked for.
func (c *Conversation) standing(name string) (env Environment, again []string, err error) {
	env, err = c.Effective(name)
	var stale *StaleError
	if !errors.As(err, &stale) {
		return env, nil, err
	}
	env, err = c.store.Environment(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	return env, c.bound.Extra.Roots, err
}

// Effective is an environment as this conversation sees it, above the base. The error is a [*StaleError] where
// somebody changed the named environment so that the two do not fit.
func (c *Conversation) Effective(name string) (Environment, error) {
	env, err := c.store.Environment(name)
	if err != nil {
		return env, err
	}
	c.mu.Lock()
	b, py := c.bound, c.py
	c.mu.Unlock()
	if b.Environment != name || !b.more() {
		return env, nil
	}
	if b.Whole {
		b.Extra.Generation = env.Generation
		return b.Extra, nil
	}
	var broken []string
	for _, p := range b.Extra.Packages {
		if was, ok := env.find(p.Name); !ok {
			env.Packages = append(slices.Clone(env.Packages), p)
		} else if was.SHA256 != p.SHA256 {
			broken = append(broken, fmt.Sprintf("%s %s is %s there", p.Name, p.Version, was.Version))
		}
	}
	if len(broken) == 0 && py != nil { // who has packages has asked the interpreter
		set := env.Packages
		if len(c.config.Base) > 0 {
			base, err := c.store.Environment(baseName)
			if err != nil {
				return env, err
			}
			set = slices.Concat(base.Packages, set)
		}
		broken = verify(set, py.Markers)
	}
	if len(broken) > 0 {
		return env, &StaleError{Environment: name, Broken: broken}
	}
	sortPackages(env.Packages)
	env.Roots = slices.Concat(env.Roots, b.Extra.Roots)
	env.Layers = slices.Concat(env.Layers, b.Extra.Layers)
	if env.Python == "" {
		env.Python = b.Extra.Python
	}
	return env, nil
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
	if err := fitsKind(env, py); err != nil {
		return nil, err
	}
	return c.store.compose(ctx, py, slices.Concat(base.Layers, env.Layers), slices.Concat(base.Packages, env.Packages), c.config.Deps)
}

// MountR gives what runs see of the R packages of an environment; nil if there are none. Release it after the run.
func (c *Conversation) MountR(ctx context.Context, name string) (*Tree, error) {
	env, err := c.store.EnvironmentOf(LanguageR, name)
	if err != nil || len(env.Packages) == 0 {
		return nil, err
	}
	h, err := c.r(ctx)
	if err != nil {
		return nil, err
	}
	if err := fitsKind(env, h); err != nil {
		return nil, err
	}
	return c.store.compose(ctx, h, env.Layers, env.Packages, nil)
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
	if now.Python == py.kind() && slices.Equal(now.Roots, mergeRoots(LanguagePython, nil, wanted)) {
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
