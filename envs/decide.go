package envs

import (
	"fmt"
	"slices"
	"strings"
)

// Decision says of the packages of a set which of them need the user's word.
type Decision struct {
	Ask    []Package // neither on packages.allow nor granted
	Denied []string  // on packages.deny, with the entry that says so
	// Near are the names, of those in Ask, that are easily taken for an allowed one, with that.
	Near map[string]string
}

// decide judges packages of a language by the configuration and the standing grants of their environment. It is
// pure.
func decide(language string, packages []Package, config Packages, grants []Grant, environment string) (Decision, error) {
	key, index, allowed, denied := "packages", config.Index, config.Allow, config.Deny
	if language == LanguageR {
		key, index, allowed, denied = "packages.r", config.R.Repo, config.R.Allow, config.R.Deny
	}
	allow, err := parseAllIn(language, allowed)
	if err != nil {
		return Decision{}, err
	}
	deny, err := parseAllIn(language, denied)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Near: map[string]string{}}
	for _, p := range packages {
		if i := slices.IndexFunc(deny, p.is); i >= 0 {
			d.Denied = append(d.Denied, fmt.Sprintf("%s %s (%s.deny has %q)", p.Name, p.Version, key, denied[i]))
			continue
		}
		granted := slices.ContainsFunc(grants, func(g Grant) bool { return g.covers(environment, bareURL(index), p) })
		if granted || slices.ContainsFunc(allow, p.is) {
			continue
		}
		d.Ask = append(d.Ask, p)
		if near := nearName(p.Name, allow); near != "" {
			d.Near[p.Name] = near
		}
	}
	return d, nil
}

// is reports whether a requirement of the configuration names the package in this version.
func (p Package) is(r Requirement) bool { return p.Name == r.Name && r.Contains(p.Version) }

// nearName finds the allowed name that another one is within two edits of.
func nearName(name string, allow []Requirement) string {
	for _, r := range allow {
		if d := editDistance(name, r.Name); d > 0 && d <= 2 {
			return r.Name
		}
	}
	return ""
}

// editDistance counts the insertions, deletions and replacements that make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// dependants says for each package which others of a set require it.
func dependants(set []Package, markers map[string]string) map[string][]string {
	needed := map[string][]string{}
	for _, p := range set {
		for _, text := range p.Requires {
			r, err := p.requirement(text)
			if err == nil && (r.Marker.Holds(markers) || strings.Contains(text, "extra")) && !slices.Contains(needed[r.Name], p.Name) {
				needed[r.Name] = append(needed[r.Name], p.Name)
			}
		}
	}
	return needed
}
