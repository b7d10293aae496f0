package overlay

import (
	"fmt"
	"slices"
	"strings"
)

// Hidden says which paths of a workspace runs can't see. It has the meaning of a .gitignore file at the
// workspace's root, a pattern a line: of the patterns that match a path the last one decides, one that
// begins with "!" takes the path back, and what lies in a hidden directory is hidden whatever matches it.
// Case counts. The zero value hides nothing.
type Hidden struct {
	patterns []string
	rules    []hideRule
}

type hideRule struct {
	glob
	negated bool
}

// NewHidden reads patterns. The error names the first that is none, by its index.
func NewHidden(patterns []string) (Hidden, error) {
	h := Hidden{patterns: slices.Clone(patterns)}
	for i, p := range patterns {
		r, err := compileHideRule(p)
		if err != nil {
			return Hidden{}, fmt.Errorf("[%d]: %w", i, err)
		}
		h.rules = append(h.rules, r)
	}
	return h, nil
}

func compileHideRule(pattern string) (hideRule, error) {
	if strings.HasPrefix(pattern, "#") {
		return hideRule{}, fmt.Errorf("%q is not a glob: it would be a comment in a .gitignore file; write \\# for a name that begins so", pattern)
	}
	rest, negated := strings.CutPrefix(trimSpaces(pattern), "!")
	g, err := compileGlob(rest)
	return hideRule{g, negated}, err
}

// trimSpaces cuts the spaces at the end of a pattern that no backslash precedes.
func trimSpaces(pattern string) string {
	rest := strings.TrimRight(pattern, " ")
	if slashes := len(rest) - len(strings.TrimRight(rest, `\`)); slashes%2 == 1 && len(rest) < len(pattern) {
		rest += " "
	}
	return rest
}

// Hides reports whether a path, relative to the workspace, is hidden. isDir says what it is, or would be.
func (h Hidden) Hides(path string, isDir bool) bool {
	if len(h.rules) == 0 || path == "" {
		return false
	}
	names := strings.Split(path, "/")
	for n := 1; n <= len(names); n++ {
		if h.decides(names[:n], n < len(names) || isDir) {
			return true
		}
	}
	return false
}

// decides reports whether the last pattern that matches just this path hides it.
func (h Hidden) decides(names []string, isDir bool) bool {
	for _, r := range slices.Backward(h.rules) {
		if r.matches(names, isDir, false) {
			return !r.negated
		}
	}
	return false
}

// progress is how far a walk from the root down has come in the patterns: for each, the next of its names
// that a name of the walk could match. The order is that of the patterns.
type progress []progressOf

type progressOf struct{ rule, next int }

// begin is the progress at the root.
func (h Hidden) begin() progress {
	var p progress
	for i := range h.rules {
		p = h.advance(p, i, 0)
	}
	return p
}

// advance adds that the next name of a pattern can be the one at next.
func (h Hidden) advance(p progress, rule, next int) progress {
	if one := (progressOf{rule, next}); !slices.Contains(p, one) {
		p = append(p, one)
	}
	if names := h.rules[rule].names; names[next] == anyNames && next < len(names)-1 {
		p = h.advance(p, rule, next+1)
	}
	return p
}

// enter judges a name in a directory that the walk has come to. For a directory that is not hidden it
// returns the progress in there; none where nothing in it can be hidden.
func (h Hidden) enter(p progress, name string, isDir bool) (hidden bool, in progress) {
	decided := -1
	useful := false
	for _, one := range p {
		r := h.rules[one.rule]
		last := one.next == len(r.names)-1
		if r.names[one.next] == anyNames {
			// A name for it, and there can be more.
			in = h.advance(in, one.rule, one.next)
			useful = useful || !r.negated
		} else if !matchName(r.names[one.next], name, false) {
			continue
		} else if !last {
			in = h.advance(in, one.rule, one.next+1)
			useful = useful || !r.negated
		}
		if last && (isDir || !r.dirOnly) {
			decided = max(decided, one.rule)
		}
	}
	hidden = decided >= 0 && !h.rules[decided].negated
	if hidden || !isDir || !useful {
		in = nil
	}
	return hidden, in
}

// in is the progress in a directory that is not hidden; none where nothing in it can be.
func (h Hidden) in(path string) progress {
	p := h.begin()
	for name := range strings.SplitSeq(path, "/") {
		_, p = h.enter(p, name, true)
	}
	return p
}

// hidesAll reports whether everything in a directory is hidden, whatever its name.
func (h Hidden) hidesAll(p progress) bool {
	return slices.ContainsFunc(p, func(one progressOf) bool {
		r := h.rules[one.rule]
		return !r.negated && !r.dirOnly && one.next == len(r.names)-1 && r.names[one.next] == anyNames &&
			!slices.ContainsFunc(h.rules[one.rule:], func(later hideRule) bool { return later.negated })
	})
}

// wanted says which names in a directory matter: these few, or, if all is set, any. A name is true if a
// pattern wants it just here, and not at any depth.
func (h Hidden) wanted(p progress) (names map[string]bool, all bool) {
	names = map[string]bool{}
	for _, one := range p {
		r := h.rules[one.rule]
		if r.negated {
			continue
		}
		if name, ok := literalName(r.names[one.next]); ok {
			names[name] = names[name] || !slices.Contains(r.names[:one.next], anyNames)
		} else {
			all = true
		}
	}
	return names, all
}

// literalName returns the only name that a pattern for names matches, if there is only one.
func literalName(pattern string) (string, bool) {
	var b strings.Builder
	for pattern != "" {
		switch pattern[0] {
		case '*', '?', '[':
			return "", false
		case '\\':
			pattern = pattern[1:] // there is something behind it: see checkName
		}
		b.WriteByte(pattern[0])
		pattern = pattern[1:]
	}
	return b.String(), true
}
