package envs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"airlock/internal/pattern"
)

// Package is one distribution of an environment: one wheel, or one source archive of R, by its hash.
type Package struct {
	Name    string `json:"name"` // of Python normalised, of R as it is
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
	// Wheel is the name of the file.
	Wheel string `json:"wheel"`
	// Size is in bytes, 0 where the index does not say.
	Size int64 `json:"size,omitempty"`
	// Yanked is true if the index took it back: it is installed only where it is asked for exactly.
	Yanked bool `json:"yanked,omitempty"`
	// Requires are the requirements that its metadata names.
	Requires []string `json:"requires,omitempty"`

	extras []string // that it has, normalised; known of a set that was just resolved
}

// lockLine is what an installer is given of a package: there is one file in the world that it fits.
func (p Package) lockLine() string {
	return p.Name + "==" + p.Version + " --hash=sha256:" + p.SHA256
}

func lockLines(packages []Package) []string {
	lines := make([]string, len(packages))
	for i, p := range packages {
		lines[i] = p.lockLine()
	}
	slices.Sort(lines)
	return lines
}

var wheelName = pattern.Lazy(`^[A-Za-z0-9._+!-]{1,240}\.whl$`)

// language is that of the package, by its file.
func (p Package) language() string {
	if strings.HasSuffix(p.Wheel, ".tar.gz") {
		return LanguageR
	}
	return LanguagePython
}

func (p Package) validate() error {
	if p.language() == LanguageR {
		if !rName().MatchString(p.Name) || !rVersion().MatchString(p.Version) || !isDigest(p.SHA256) || !rFile().MatchString(p.Wheel) {
			return fmt.Errorf("%q is no R package with a version and a sha256", clip(p.Name, 80))
		}
		return nil
	}
	switch {
	case NormalizeName(p.Name) != p.Name || !packageName().MatchString(p.Name):
		return fmt.Errorf("%q is not a normalised name", clip(p.Name, 80))
	case !isDigest(p.SHA256):
		return fmt.Errorf("%s has no sha256", p.Name)
	case !wheelName().MatchString(p.Wheel):
		return fmt.Errorf("%s has no name of a wheel: %q", p.Name, clip(p.Wheel, 80))
	case strings.TrimSpace(p.Version) != p.Version:
		return fmt.Errorf("%s has a version with space around it: %q", p.Name, clip(p.Version, 80))
	case p.Size < 0:
		return fmt.Errorf("%s has a size below 0", p.Name)
	}
	_, err := ParseVersion(p.Version)
	return err
}

var packageName = pattern.Lazy(`^[a-z0-9]([a-z0-9-]{0,126}[a-z0-9])?$`)

func validateAll(packages []Package) error {
	seen := map[string]bool{}
	for _, p := range packages {
		if err := p.validate(); err != nil {
			return err
		}
		if seen[p.Name] {
			return fmt.Errorf("%s is there twice", p.Name)
		}
		seen[p.Name] = true
	}
	return nil
}

// Environment is a name and what belongs to it, above the base: the document of a named environment, and
// the form in which that of a conversation is kept.
type Environment struct {
	Name     string `json:"name"`
	Language string `json:"language"`
	// Generation counts the changes.
	Generation int `json:"generation"`
	// Python says for which kind of interpreter, or of R, the layers were made.
	Python string `json:"python"`
	// Roots are the requirements that were asked for, in canonical form.
	Roots []string `json:"roots"`
	// Layers are the digests of the layers, in their order.
	Layers []string `json:"layers"`
	// Packages are what the layers hold.
	Packages []Package `json:"packages"`
}

// DefaultEnvironment is the name of the environment that a conversation starts from.
const DefaultEnvironment = "default"

var environmentName = pattern.Lazy(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckName reports a name that an environment can't have.
func CheckName(name string) error {
	if !environmentName().MatchString(name) {
		return fmt.Errorf("%q is not a name of an environment; takes up to 64 of a-z, 0-9, '.', '_' and '-', not beginning with the last three", clip(name, 80))
	}
	return nil
}

// Validate implements document.
func (e *Environment) Validate() error {
	if e.Name != baseName {
		if err := CheckName(e.Name); err != nil {
			return err
		}
	}
	if e.Language != LanguagePython && e.Language != LanguageR {
		return fmt.Errorf("the language %q is not known", clip(e.Language, 20))
	}
	if _, err := parseAllIn(e.Language, e.Roots); err != nil {
		return err
	}
	for _, p := range e.Packages {
		if p.language() != e.Language {
			return fmt.Errorf("%s is no package of the language %s", p.Wheel, e.Language)
		}
	}
	for _, l := range e.Layers {
		if !isDigest(l) {
			return fmt.Errorf("%q is not the digest of a layer", clip(l, 80))
		}
	}
	return validateAll(e.Packages)
}

func (e *Environment) find(name string) (Package, bool) {
	return find(e.Packages, name)
}

func find(packages []Package, name string) (Package, bool) {
	i := slices.IndexFunc(packages, func(p Package) bool { return p.Name == name })
	if i < 0 {
		return Package{}, false
	}
	return packages[i], true
}

// digestOf names a value by its content.
func digestOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func sortPackages(packages []Package) {
	slices.SortFunc(packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
}
