package envs

import (
	"fmt"
	"slices"
)

// verify reports the requirements of a set that the set itself does not satisfy: what an installer that
// looks only at what it installs leaves behind.
func verify(set []Package, markers map[string]string) []string {
	env := map[string]string{"extra": ""}
	for k, v := range markers {
		env[k] = v
	}
	var broken []string
	for _, p := range set {
		for _, text := range p.Requires {
			r, err := p.requirement(text)
			if err != nil {
				// A requirement that can't be read is one that pip did without, or it is an address.
				broken = append(broken, fmt.Sprintf("%s %s requires %q, which can't be read", p.Name, p.Version, clip(text, 100)))
				continue
			}
			if !r.Marker.Holds(env) {
				continue
			}
			i := slices.IndexFunc(set, func(o Package) bool { return o.Name == r.Name })
			switch {
			case i < 0:
				broken = append(broken, fmt.Sprintf("%s %s requires %s, which is not there", p.Name, p.Version, r.Name))
			case !r.Contains(set[i].Version):
				broken = append(broken, fmt.Sprintf("%s %s requires %s, and %s is there", p.Name, p.Version, r, set[i].Version))
			}
		}
	}
	return broken
}

// requirement reads one of those that the package's own metadata names.
func (p Package) requirement(text string) (Requirement, error) {
	if p.language() == LanguageR {
		return parseRRequirement(text)
	}
	return parseRequirement(text)
}
