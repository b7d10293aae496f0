package envs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"airlock/internal/units"
)

// rHave is where the step "install" sees what an environment holds already.
const rHave = "/env-r-have"

// makeRLayer returns the layer of a set of R packages, and makes it if it is not there. have is the tree of what
// the packages are built against beside each other, nil for none.
func (c *Conversation) makeRLayer(ctx context.Context, h *rHost, packages []Package, have *Tree, fits func([]Package) error, progress func(string)) (digest string, l layer, err error) {
	packages = inOrder(packages)
	if err := fits(packages); err != nil {
		return "", layer{}, err
	}
	return c.layerOf(h, packages, func(w *work) (layer, error) {
		staging, sources, made := filepath.Join(w.dir, "env"), filepath.Join(w.dir, "wheels"), filepath.Join(w.dir, "layer")
		if err := errors.Join(os.Mkdir(staging, 0o755), os.Mkdir(sources, 0o755), os.Mkdir(made, 0o755)); err != nil {
			return layer{}, err
		}
		var lines []string
		for _, p := range packages {
			if err := linkOrCopy(c.store.wheelFile(p), filepath.Join(sources, p.Wheel)); err != nil {
				return layer{}, fmt.Errorf("%s is not kept any more, call again: %w", p.Wheel, err)
			}
			lines = append(lines, p.Wheel)
		}
		if progress != nil {
			progress("installing " + units.Counted(len(packages), "package"))
		}
		step := h.step("install", rMountPoint, rHave)
		step.Binds = []Bind{{Source: staging, Target: rMountPoint, Writable: true}, {Source: sources, Target: "/wheels"}}
		if have != nil {
			step.Binds = append(step.Binds, Bind{Source: have.Root, Target: rHave})
		}
		var answer struct{ Packages []rRow }
		out, err := h.drive(ctx, c, w, step, lines, &answer)
		if err != nil {
			return layer{}, err
		}
		for _, p := range packages {
			if !slices.ContainsFunc(answer.Packages, func(r rRow) bool { return r.Name == p.Name && r.Version == p.Version }) {
				return layer{}, &StepError{Step: "install", Outcome: out}
			}
		}
		if err := onlyPackages(staging, packages); err != nil {
			return layer{}, err
		}
		return finishLayer(staging, made, skeleton{}, []string{h.Library}, layer{Python: h.kind(), Packages: packages})
	})
}

// onlyPackages reports what is in a library beside the packages of a set: their code made the library, and could put
// another package there, which nobody decided on.
func onlyPackages(library string, packages []Package) error {
	entries, err := os.ReadDir(library)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, decided := find(packages, e.Name()); !decided || !e.IsDir() {
			return fmt.Errorf("the installation left %q, which is no package of the set", clip(e.Name(), 200))
		}
	}
	return nil
}

// inOrder sorts packages so that each comes after those that it requires. Those that require each other come in
// the order of their names.
func inOrder(packages []Package) []Package {
	packages = slices.Clone(packages)
	sortPackages(packages)
	var ordered []Package
	seen := map[string]bool{}
	var visit func(p Package)
	visit = func(p Package) {
		if seen[p.Name] {
			return
		}
		seen[p.Name] = true
		for _, text := range p.Requires {
			r, err := parseRRequirement(text)
			if other, ok := find(packages, r.Name); err == nil && ok {
				visit(other)
			}
		}
		ordered = append(ordered, p)
	}
	for _, p := range packages {
		visit(p)
	}
	return ordered
}
