package envs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"airlock/internal/filelock"
)

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
	env, err := c.store.EnvironmentOf(p.runtime.language(), p.Want.Environment)
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
	file := c.store.environmentFile(env.Language, env.Name)
	held, err := filelock.Wait(ctx, strings.TrimSuffix(file, ".json")+".lock", filelock.Alone)
	if err != nil {
		return Installed{}, err
	}
	defer held.Unlock()
	if now, err := c.store.EnvironmentOf(env.Language, env.Name); err != nil {
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
	defer all.Unlock()
	if err := c.store.spend(p); err != nil {
		return Installed{}, err
	}
	return installed, writeDocument(file, &next)
}

// applyHere installs for this conversation only, one set after the other.
func (c *Conversation) applyHere(ctx context.Context, p *Plan, progress func(string)) (Installed, error) {
	select {
	case c.here <- struct{}{}:
		defer func() { <-c.here }()
	case <-ctx.Done():
		return Installed{}, context.Cause(ctx)
	}
	named, err := c.store.Environment(p.Want.Environment)
	if err != nil {
		return Installed{}, err
	}
	env, _, err := c.standing(p.Want.Environment)
	if err != nil {
		return Installed{}, err
	}
	if named.Generation != p.Generation || env.Generation != p.Generation || !slices.EqualFunc(env.Packages, p.now, func(a, b Package) bool { return a.SHA256 == b.SHA256 }) {
		return Installed{}, ErrChanged
	}
	next, installed, err := c.build(ctx, p, env, progress)
	if err != nil {
		return Installed{}, err
	}
	all, err := c.store.lock(ctx)
	if err != nil {
		return Installed{}, err
	}
	defer all.Unlock()
	if err := c.store.spend(p); err != nil {
		return Installed{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := binding{Environment: p.Want.Environment, Chosen: true, Extra: next, Whole: true}
	if wasWhole := c.bound.Whole && c.bound.Environment == named.Name; installed.Additive && !wasWhole {
		// On top of the named environment, so that what is installed there later, or was meanwhile, is seen here.
		b.Whole = false
		b.Extra.Layers = next.Layers[len(named.Layers):]
		b.Extra.Roots = slices.DeleteFunc(slices.Clone(next.Roots), func(r string) bool { return slices.Contains(named.Roots, r) })
		b.Extra.Packages = slices.DeleteFunc(slices.Clone(next.Packages), func(x Package) bool {
			_, there := named.find(x.Name)
			return there
		})
	}
	return installed, c.bind(b)
}

// build makes the layers and the tree of a plan and verifies the whole. It changes no environment.
func (c *Conversation) build(ctx context.Context, p *Plan, env Environment, progress func(string)) (Environment, Installed, error) {
	next := Environment{Name: env.Name, Language: p.runtime.language(), Python: p.runtime.kind(), Roots: p.roots, Layers: slices.Clone(env.Layers), Packages: slices.Clone(p.Set)}
	made := p.added()
	if !p.Additive {
		// Of a layer nothing can be taken away: the whole set is one.
		next.Layers, made = nil, next.Packages
	}
	installed := Installed{Changes: p.Changes, Additive: p.Additive}
	// fits reports what is wrong with the whole, by what the wheels themselves require of what is new.
	fits := func(made []Package) error {
		for i, pkg := range next.Packages {
			if of, ok := find(made, pkg.Name); ok {
				next.Packages[i].Requires = of.Requires
			}
		}
		broken := verify(slices.Concat(p.base.Packages, next.Packages), p.runtime.markers())
		if len(broken) > 0 {
			return fmt.Errorf("the packages do not fit together, and nothing was changed: %s", strings.Join(broken[:min(len(broken), 8)], "; "))
		}
		return nil
	}
	if len(made) > 0 {
		digest, l, err := c.layer(ctx, p, env, made, fits, progress)
		if err != nil {
			return next, installed, err
		}
		if !slices.Contains(next.Layers, digest) {
			next.Layers = append(next.Layers, digest)
		}
		installed.Missing, made = l.Missing, l.Packages
	}
	if err := fits(made); err != nil { // once more: the layer may have been there
		return next, installed, err
	}
	if progress != nil {
		progress("composing the environment")
	}
	tree, err := c.store.compose(ctx, p.runtime, slices.Concat(p.base.Layers, next.Layers), slices.Concat(p.base.Packages, next.Packages), c.deps(p.runtime))
	tree.Release()
	return next, installed, err
}

// layer makes the layer of what a plan adds, if that fits.
func (c *Conversation) layer(ctx context.Context, p *Plan, env Environment, made []Package, fits func([]Package) error, progress func(string)) (string, layer, error) {
	h, ofR := p.runtime.(*rHost)
	if !ofR {
		return c.makeLayer(ctx, p.runtime.(*python), made, fits, progress)
	}
	var have *Tree
	if p.Additive && len(env.Layers) > 0 {
		var err error
		if have, err = c.store.compose(ctx, h, env.Layers, env.Packages, nil); err != nil {
			return "", layer{}, err
		}
		defer have.Release()
	}
	return c.makeRLayer(ctx, h, made, have, fits, progress)
}

// deps are the site directories of the person's that a tree of a runtime has.
func (c *Conversation) deps(of runtime) []string {
	if of.language() != LanguagePython {
		return nil
	}
	return c.config.Deps
}
