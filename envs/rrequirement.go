package envs

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"airlock/internal/pattern"
)

// Languages of environments.
const (
	LanguagePython = "python"
	LanguageR      = "r"
)

var (
	// rName is what R takes for the name of a package (Writing R Extensions, 1.1.1). Case counts.
	rName        = pattern.Lazy(`^[A-Za-z][A-Za-z0-9.]{0,125}[A-Za-z0-9]$`)
	rVersion     = pattern.Lazy(`^[0-9]{1,9}(?:[.-][0-9]{1,9}){0,20}$`)
	rRequirement = pattern.Lazy(`^([A-Za-z][A-Za-z0-9.]*[A-Za-z0-9]) ?(?:(\()? ?(>=|<=|==|!=|>|<) ?([0-9][0-9.-]*)(\))?)?$`)
	rFile        = pattern.Lazy(`^[A-Za-z0-9._-]{1,240}\.tar\.gz$`)
)

var errNoRRequirement = errors.New(`not a requirement: a name of an R package, with a version if any, as in "jsonlite" or "jsonlite>=1.8"`)

// parseRRequirement reads what R packages call a dependency, "jsonlite" or "jsonlite (>= 1.8)", and the same
// without the brackets. The error does not repeat the text, which may be anything.
func parseRRequirement(s string) (Requirement, error) {
	m := rRequirement().FindStringSubmatch(s)
	if m == nil || !rName().MatchString(m[1]) || (m[2] == "") != (m[5] == "") || m[4] != "" && !rVersion().MatchString(m[4]) {
		return Requirement{}, errNoRRequirement
	}
	r := Requirement{Name: m[1], ofR: true}
	if m[3] != "" {
		r.Specifiers = []Specifier{{Op: m[3], Version: m[4]}}
	}
	return r, nil
}

// parseIn reads a requirement of a language.
func parseIn(language, s string) (Requirement, error) {
	if language == LanguageR {
		return parseRRequirement(s)
	}
	return ParseRequirement(s)
}

// rFields reads the fields of a package's description that name others, without R itself.
func rFields(fields string) ([]Requirement, error) {
	var all []Requirement
	for text := range strings.SplitSeq(fields, ",") {
		text = strings.Join(strings.Fields(text), " ")
		if text == "" || text == "R" || strings.HasPrefix(text, "R (") || strings.HasPrefix(text, "R(") {
			continue // the index was asked for what this R takes
		}
		r, err := parseRRequirement(text)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// compareR compares versions as R does: number by number, where "." and "-" are the same.
func compareR(a, b string) int {
	numbers := func(s string) []int {
		var all []int
		for part := range strings.SplitSeq(strings.ReplaceAll(s, "-", "."), ".") {
			n, _ := strconv.Atoi(part) // both were matched
			all = append(all, n)
		}
		return all
	}
	return slices.Compare(numbers(a), numbers(b))
}

// containsR reports whether a version satisfies all specifiers.
func (r Requirement) containsR(version string) bool {
	if !rVersion().MatchString(version) {
		return false
	}
	return !slices.ContainsFunc(r.Specifiers, func(s Specifier) bool {
		order := cmp.Compare(compareR(version, s.Version), 0)
		return !map[string]bool{"==": order == 0, "!=": order != 0, ">=": order >= 0, "<=": order <= 0, ">": order > 0, "<": order < 0}[s.Op]
	})
}
