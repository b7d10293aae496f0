package overlay

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// glob is a compiled pattern with the meaning that it has in a .gitignore file:
//
//   - a pattern without a slash, but for one at its end, matches a name at any depth;
//   - any other is tied to the root of the workspace;
//   - "*" and "?" and "[a-z]", "[!a-z]", "[[:digit:]]" match within a name, "\" takes the next character
//     as it is;
//   - "**" as a whole name matches any number of names: "**/x", "a/**/b"; "a/**" is everything in a,
//     but not a itself;
//   - a slash at the end matches directories only;
//   - what matches a directory matches everything in it.
//
// A leading "!" is refused: there is no list to take a path back from. So are alternatives in braces, "{a,b}", which
// are not among these: who writes them means what they mean elsewhere.
type glob struct {
	names    []string // the pattern's parts; "**" stands for any number of names
	dirOnly  bool
	foldCase bool
}

const anyNames = "**"

// alternatives reports whether a pattern holds braces with a comma between them, and the first is not escaped.
func alternatives(pattern string) bool {
	open, comma := false, false
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '{':
			open, comma = true, false
		case ',':
			comma = open
		case '}':
			if comma {
				return true
			}
			open = false
		}
	}
	return false
}

// compileGlob reads a pattern; the error names it.
func compileGlob(pattern string) (glob, error) {
	bad := func(why string) (glob, error) {
		return glob{}, fmt.Errorf("%q is not a glob: %s", pattern, why)
	}
	rest, dirOnly := strings.CutSuffix(pattern, "/")
	if strings.HasSuffix(rest, `\`) {
		rest, dirOnly = pattern, false // the slash was escaped, which means nothing: let it be refused below
	}
	rest, rooted := strings.CutPrefix(rest, "/")
	switch {
	case rest == "":
		return bad("it is empty")
	case strings.HasPrefix(pattern, "!"):
		return bad("a leading ! is not supported")
	case alternatives(pattern):
		return bad("it holds alternatives in braces; write a glob for each, or \\{ for a name that holds a brace")
	}
	g := glob{names: strings.Split(rest, "/"), dirOnly: dirOnly}
	for _, n := range g.names {
		switch {
		case n == "" || n == "." || n == "..":
			return bad(fmt.Sprintf("it holds the name %q", n))
		case n == anyNames:
		default:
			if err := checkName(n); err != nil {
				return bad(err.Error())
			}
		}
	}
	if !rooted && len(g.names) == 1 && g.names[0] != anyNames {
		g.names = []string{anyNames, g.names[0]}
	}
	return g, nil
}

// match reports whether the path, or a directory that it lies in, matches.
func (g glob) match(path string, isDir bool) bool {
	return g.matchNames(strings.Split(path, "/"), isDir)
}

// matchNames is match for a path that was split already.
func (g glob) matchNames(names []string, isDir bool) bool { return g.matches(names, isDir, true) }

// matches matches the names of a path: all of them, or, if inside is set, those of a directory that it
// lies in.
func (g glob) matches(names []string, isDir, inside bool) bool {
	// Classic backtracking to the last star is enough, since "**" takes any names: if the pattern
	// matches at all, it matches with the shortest choice for every earlier star.
	p, n, star, mark := 0, 0, -1, 0
	for {
		if p == len(g.names) && (n < len(names) && inside || n == len(names) && (isDir || !g.dirOnly)) {
			return true // what is left of names lies in a directory that matched
		}
		switch {
		case p < len(g.names) && g.names[p] == anyNames && p == len(g.names)-1:
			if n < len(names) && (isDir || !g.dirOnly || inside && n < len(names)-1) {
				return true // at least one name lies inside
			}
		case p < len(g.names) && g.names[p] == anyNames:
			star, mark = p, n
			p++
			continue
		case p < len(g.names) && n < len(names) && matchName(g.names[p], names[n], g.foldCase):
			p++
			n++
			continue
		}
		if star < 0 || mark >= len(names) {
			return false
		}
		mark++
		p, n = star+1, mark
	}
}

// checkName finds the mistakes that matchName would otherwise have to guess about.
func checkName(pattern string) error {
	for pattern != "" {
		_, rest, err := nextToken(pattern)
		if err != nil {
			return err
		}
		pattern = rest
	}
	return nil
}

// token is one element of a pattern for a name: a star, or something that takes one character.
type token struct {
	star   bool
	any    bool
	negate bool
	ranges [][2]rune // a literal is a range of one
}

// classes are what [:NAME:] stands for within brackets: of ASCII, as for git.
var classes = map[string][][2]rune{
	"alnum":  {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}},
	"alpha":  {{'A', 'Z'}, {'a', 'z'}},
	"blank":  {{' ', ' '}, {'\t', '\t'}},
	"cntrl":  {{0, 0x1f}, {0x7f, 0x7f}},
	"digit":  {{'0', '9'}},
	"graph":  {{'!', '~'}},
	"lower":  {{'a', 'z'}},
	"print":  {{' ', '~'}},
	"punct":  {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}},
	"space":  {{'\t', '\r'}, {' ', ' '}},
	"upper":  {{'A', 'Z'}},
	"xdigit": {{'0', '9'}, {'A', 'F'}, {'a', 'f'}},
}

func nextToken(pattern string) (token, string, error) {
	r, n := utf8.DecodeRuneInString(pattern)
	rest := pattern[n:]
	switch r {
	case '*':
		return token{star: true}, rest, nil
	case '?':
		return token{any: true}, rest, nil
	case '\\':
		if rest == "" {
			return token{}, "", errors.New("it ends in a backslash")
		}
		r, n := literal(rest)
		return token{ranges: [][2]rune{{r, r}}}, rest[n:], nil
	case '[':
		return nextClass(rest)
	}
	r, n = literal(pattern)
	return token{ranges: [][2]rune{{r, r}}}, pattern[n:], nil
}

func nextClass(s string) (token, string, error) {
	var t token
	if s != "" && (s[0] == '!' || s[0] == '^') {
		t.negate, s = true, s[1:]
	}
	next := func() (rune, bool) {
		if len(s) > 1 && s[0] == '\\' {
			s = s[1:]
		}
		if s == "" {
			return 0, false
		}
		r, n := literal(s)
		s = s[n:]
		return r, true
	}
	for first := true; ; first = false {
		if s == "" {
			return token{}, "", errors.New("a [ is not closed")
		}
		if s[0] == ']' && !first {
			return t, s[1:], nil
		}
		if named, ok := strings.CutPrefix(s, "[:"); ok {
			name, rest, closed := strings.Cut(named, ":]")
			ranges, known := classes[name]
			if !closed || !known {
				return token{}, "", errors.New("a [: in brackets does not begin the name of a class, as in [[:alpha:]]")
			}
			t.ranges, s = append(t.ranges, ranges...), rest
			continue
		}
		lo, _ := next()
		hi := lo
		if len(s) > 1 && s[0] == '-' && s[1] != ']' {
			s = s[1:]
			var ok bool
			if hi, ok = next(); !ok {
				return token{}, "", errors.New("a [ is not closed")
			}
		}
		if hi < lo {
			return token{}, "", errors.New("a range in [] is upside down")
		}
		t.ranges = append(t.ranges, [2]rune{lo, hi})
	}
}

// badByte is added to a byte that is not UTF-8, so that it equals itself and no character.
const badByte = unicode.MaxRune + 1

// literal decodes one character, or one byte where there is none.
func literal(s string) (rune, int) {
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 {
		return badByte + rune(s[0]), 1
	}
	return r, n
}

// matchName matches one name; the pattern went through checkName.
func matchName(pattern, name string, foldCase bool) bool {
	if startsOtherwise(pattern, name) {
		return false
	}
	starPattern, starName, starred := "", "", false
	for {
		if pattern == "" && name == "" {
			return true
		}
		if pattern != "" {
			t, rest, err := nextToken(pattern)
			switch {
			case err != nil:
				return false
			case t.star:
				starPattern, starName, starred = rest, name, true
				pattern = rest
				continue
			case name != "":
				if r, n := literal(name); t.takes(r, foldCase) {
					pattern, name = rest, name[n:]
					continue
				}
			}
		}
		if !starred || starName == "" {
			return false
		}
		_, n := literal(starName)
		starName = starName[n:]
		pattern, name = starPattern, starName
	}
}

// startsOtherwise finds most names that don't match at their first byte.
func startsOtherwise(pattern, name string) bool {
	if pattern == "" || name == "" || strings.IndexByte("*?[\\", pattern[0]) >= 0 {
		return false
	}
	p, n := pattern[0], name[0]
	if p >= utf8.RuneSelf || n >= utf8.RuneSelf {
		return false // may be another case of the same character
	}
	return p != n && p|0x20 != n|0x20
}

func (t token) takes(r rune, foldCase bool) bool {
	if t.any {
		return true
	}
	in := false
	for r2, start := r, true; start || (foldCase && r2 != r); start = false {
		for _, rg := range t.ranges {
			in = in || (rg[0] <= r2 && r2 <= rg[1])
		}
		if r >= badByte {
			break // SimpleFold knows characters only
		}
		r2 = unicode.SimpleFold(r2)
	}
	return in != t.negate
}
