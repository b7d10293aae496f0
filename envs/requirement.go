package envs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"airlock/internal/pattern"
)

// Requirement is what PEP 508 calls one, without what would make an installer read anything but its
// index: no option, path, address, hash or "===".
type Requirement struct {
	Name       string   // normalised
	Extras     []string // normalised, sorted
	Specifiers []Specifier
	Marker     Marker // its zero value is true everywhere

	ofR bool // versions are R's, and the name is as it was written
}

// ParseRequirement reads a requirement. The error says what is wrong with it, and not more than its
// beginning, since the text may be anything.
func ParseRequirement(s string) (Requirement, error) {
	if len(s) > 512 || !requirement().MatchString(s) {
		return Requirement{}, errNoRequirement
	}
	return parseRequirement(s)
}

var errNoRequirement = errors.New(`not a requirement: a package name, with versions if any, as in "six" or "numpy>=1.26"`)

var requirementParts = pattern.Lazy(`^\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[([^\]]*)\])?\s*([^;]*?)\s*(?:;\s*(.*?)\s*)?$`)

// errDirect is what a requirement is that names a place instead of a version.
var errDirect = errors.New("names an address or a path in place of versions")

// parseRequirement reads a requirement of a package's own metadata too, where spellings are older and
// markers longer.
func parseRequirement(s string) (Requirement, error) {
	m := requirementParts().FindStringSubmatch(s)
	if m == nil || len(s) > 4096 {
		return Requirement{}, errNoRequirement
	}
	r := Requirement{Name: NormalizeName(m[1])}
	for extra := range strings.SplitSeq(m[2], ",") {
		if extra = strings.TrimSpace(extra); extra != "" {
			r.Extras = append(r.Extras, NormalizeName(extra))
		}
	}
	slices.Sort(r.Extras)
	r.Extras = slices.Compact(r.Extras)
	versions := m[3]
	if strings.HasPrefix(versions, "@") {
		return Requirement{}, errDirect
	}
	if inner, ok := strings.CutPrefix(versions, "("); ok {
		versions = strings.TrimSuffix(inner, ")")
	}
	for clause := range strings.SplitSeq(versions, ",") {
		if clause = strings.TrimSpace(clause); clause == "" {
			continue
		}
		i := strings.IndexFunc(clause, func(c rune) bool { return !strings.ContainsRune("~=!<>", c) })
		if i < 1 || !slices.Contains(operators[:], clause[:i]) {
			return Requirement{}, fmt.Errorf("%q is not a version specifier", clip(clause, 80))
		}
		spec := Specifier{Op: clause[:i], Version: strings.TrimSpace(clause[i:])}
		if err := spec.check(); err != nil {
			return Requirement{}, err
		}
		r.Specifiers = append(r.Specifiers, spec)
	}
	var err error
	r.Marker, err = parseMarker(m[4])
	return r, err
}

var operators = [...]string{"==", "!=", "<=", ">=", "<", ">", "~="}

// String gives the requirement in our own canonical form, which is all that an installer gets to see.
func (r Requirement) String() string {
	var b strings.Builder
	b.WriteString(r.Name)
	if len(r.Extras) > 0 {
		b.WriteString("[" + strings.Join(r.Extras, ",") + "]")
	}
	for i, s := range r.Specifiers {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(s.String())
	}
	if r.Marker.text != "" {
		b.WriteString(" ; " + r.Marker.text)
	}
	return b.String()
}

// Contains reports whether a version satisfies all clauses. Of a version that can't be read only a
// requirement without clauses is satisfied.
func (r Requirement) Contains(version string) bool {
	if len(r.Specifiers) == 0 {
		return true
	}
	if r.ofR {
		return r.containsR(version)
	}
	v, err := ParseVersion(version)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(r.Specifiers, func(s Specifier) bool { return !s.Contains(v) })
}

var separators = pattern.Lazy(`[-_.]+`)

// NormalizeName gives the one spelling of a package's name under which it is compared (PEP 503):
// "Zope.Interface" and "zope_interface" are "zope-interface".
func NormalizeName(name string) string {
	return strings.ToLower(separators().ReplaceAllString(name, "-"))
}

// CheckRequirement reports what is no requirement of a language, [LanguagePython] or [LanguageR].
func CheckRequirement(language, s string) error {
	_, err := parseIn(language, s)
	return err
}

// parseAll reads a list of requirements of Python packages, and names the one that is wrong.
func parseAll(list []string) ([]Requirement, error) { return parseAllIn(LanguagePython, list) }

// parseAllIn does so for a language.
func parseAllIn(language string, list []string) ([]Requirement, error) {
	all := make([]Requirement, 0, len(list))
	for _, s := range list {
		r, err := parseIn(language, s)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", clip(s, 80), err)
		}
		all = append(all, r)
	}
	return all, nil
}
