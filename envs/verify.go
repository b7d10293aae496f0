package envs

import "fmt"

// verify reports the requirements of a set that the set itself does not satisfy: what an installer that
// looks only at what it installs leaves behind.
func verify(set []Package, markers map[string]string) []string {
	var broken []string
	unsatisfied(set, markers, func(p Package, _ string, err error) {
		broken = append(broken, fmt.Sprintf("%s %s requires %v", p.Name, p.Version, err))
	})
	return broken
}

// unsatisfied calls report for each requirement of a set that the set does not satisfy, with the package that has it,
// the name that it is about and what is wrong. The name is "" of a requirement that can't be read: that is one that pip
// did without, or an address.
func unsatisfied(set []Package, markers map[string]string, report func(p Package, needed string, err error)) {
	env := map[string]string{"extra": ""}
	for k, v := range markers {
		env[k] = v
	}
	for _, p := range set {
		for _, text := range p.Requires {
			r, err := p.requirement(text)
			if err != nil {
				report(p, "", fmt.Errorf("%q, which can't be read", clip(text, 100)))
				continue
			}
			if !r.Marker.Holds(env) {
				continue
			}
			switch there, ok := find(set, r.Name); {
			case !ok:
				report(p, r.Name, fmt.Errorf("%s, which is not there", r.Name))
			case !r.Contains(there.Version):
				report(p, r.Name, fmt.Errorf("%s, and %s is there", r, there.Version))
			}
		}
	}
}

// requirement reads one of those that the package's own metadata names.
func (p Package) requirement(text string) (Requirement, error) {
	if p.language() == LanguageR {
		return parseRRequirement(text)
	}
	return parseRequirement(text)
}
