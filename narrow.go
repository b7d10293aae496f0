package main

import (
	"cmp"
	"slices"
	"strings"

	"airlock/internal/units"
	"airlock/proxy"
)

// narrowing says how a project policy may change a key: by adding to the user's list, or to a value
// that is no wider than the user's.
type narrowing struct {
	adds    bool
	narrows func(user, project any) bool // with adds, nil is that any entry does; equal values narrow
}

// narrowings is every key that a project policy may set. A key that isn't here widens by being set.
//
//	workspace.mode      direct, overlay, readonly: later is stricter
//	workspace.land_on   exit, success, review
//	workspace.protect   added to the user's
//	sandbox.backend     direct, auto, then native or bwrap, of which neither is stricter
//	sandbox.hide        added to the user's, without "!"
//	limits.*            smaller; for cpu, where 0 is all cores, any number is smaller than 0
//	limits.enforce      best, strict
//	network.mode        allow, allowlist, deny
//	network.allow       each entry is covered by one of the user's; takes the place of the user's list
//	network.deny        added to the user's
//	packages.approve    ask, allowlist, never
//	packages.deny       added to the user's
//	tools.disable       added to the user's
var narrowings = map[string]narrowing{
	"workspace.mode":     {narrows: stricter(rank{"direct": 0, "overlay": 1, "readonly": 2})},
	"workspace.land_on":  {narrows: stricter(rank{"exit": 0, "success": 1, "review": 2})},
	"workspace.protect":  {adds: true},
	"sandbox.backend":    {narrows: stricter(rank{"direct": 0, "auto": 1, "native": 2, "bwrap": 2})},
	"sandbox.hide":       {adds: true, narrows: takesNothingBack},
	"limits.timeout":     {narrows: smaller[units.Duration]},
	"limits.max_timeout": {narrows: smaller[units.Duration]},
	"limits.wait":        {narrows: smaller[units.Duration]},
	"limits.processes":   {narrows: smaller[int]},
	"limits.memory":      {narrows: smaller[units.Size]},
	"limits.disk":        {narrows: smaller[units.Size]},
	"limits.output":      {narrows: smaller[units.Size]},
	"limits.runs":        {narrows: smaller[int]},
	"limits.files":       {narrows: smaller[int]},
	"limits.cpu":         {narrows: fewerCores},
	"limits.enforce":     {narrows: stricter(rank{"best": 0, "strict": 1})},
	"network.mode":       {narrows: stricter(rank{"allow": 0, "allowlist": 1, "deny": 2})},
	"network.allow":      {narrows: coveredPatterns},
	"network.deny":       {adds: true},
	"packages.approve":   {narrows: stricter(rank{"ask": 0, "allowlist": 1, "never": 2})},
	"packages.deny":      {adds: true},
	"tools.disable":      {adds: true},
}

// rank orders the values of a key, the strictest last.
type rank map[string]int

// stricter lets a value stay or move to a higher rank. A value that has no rank never narrows.
func stricter(r rank) func(user, project any) bool {
	return func(user, project any) bool {
		mine, known := r[user.(string)]
		theirs, ok := r[project.(string)]
		return user == project || known && ok && theirs > mine
	}
}

func smaller[T cmp.Ordered](user, project any) bool {
	return project.(T) <= user.(T)
}

// fewerCores compares numbers of cores, of which 0 means all. NaN, which TOML can write, is refused.
func fewerCores(user, project any) bool {
	mine, theirs := user.(float64), project.(float64)
	return theirs == mine || theirs > 0 && (mine == 0 || theirs < mine)
}

// takesNothingBack refuses the entries of a list of globs that show again what others hide.
func takesNothingBack(_, project any) bool {
	return !slices.ContainsFunc(project.([]string), func(glob string) bool { return strings.HasPrefix(glob, "!") })
}

func coveredPatterns(user, project any) bool {
	var mine []proxy.Pattern
	for _, entry := range user.([]string) {
		if p, err := proxy.ParsePattern(entry); err == nil {
			mine = append(mine, p)
		}
	}
	for _, entry := range project.([]string) {
		theirs, err := proxy.ParsePattern(entry)
		if err != nil || !slices.ContainsFunc(mine, func(p proxy.Pattern) bool { return p.Covers(theirs) }) {
			return false
		}
	}
	return true
}

// union returns the user's entries and then those of the project's that are new.
func union(user, project []string) []string {
	all := slices.Clone(user)
	for _, entry := range project {
		if !slices.Contains(all, entry) {
			all = append(all, entry)
		}
	}
	return all
}
