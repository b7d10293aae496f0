package envs

import "path/filepath"

// runtime is what the packages of an environment are installed for.
type runtime interface {
	language() string
	// kind says what layers can be used with it.
	kind() string
	// markers are the values that conditions of requirements are judged by; nil where there are none.
	markers() map[string]string
	shape() shape
}

// shape is what a tree of a runtime looks like.
type shape struct {
	// identity tells runtimes apart whose layers are the same and whose trees are not.
	identity []string
	bones    skeleton
	// site is the directory of the packages, relative to the tree; mount where runs see the tree.
	site, mount string
	// show are further paths of the host that runs must see.
	show []string
}

func (p *python) language() string           { return LanguagePython }
func (p *python) markers() map[string]string { return p.Markers }

func (p *python) shape() shape {
	return shape{
		identity: []string{p.kind(), p.Executable, p.Version},
		bones:    p.skeleton(), site: p.site(), mount: mountPoint, show: p.found.Prefix,
	}
}

func (h *rHost) language() string           { return LanguageR }
func (h *rHost) markers() map[string]string { return nil }

// rMountPoint is where steps and runs see a library of R packages.
const rMountPoint = "/env-r"

func (h *rHost) shape() shape {
	return shape{identity: []string{h.kind()}, site: ".", mount: rMountPoint}
}

// Python is where runs see the interpreter of an environment.
func (t *Tree) Python() string { return filepath.Join(mountPoint, "bin", "python") }

// MountPoint is where runs see a tree.
func (t *Tree) MountPoint() string { return t.mount }
