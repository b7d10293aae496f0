package gitconfig

import (
	"errors"
	"fmt"
	"strings"
)

// Entry is one variable, in the order of the file.
type Entry struct {
	Section    string // in lower case
	Subsection string // "" where there is none; an empty one is refused
	Key        string // in lower case
	Value      string
	Implicit   bool // a key without "=", which is true to git
}

// name is the variable that the entry sets, as git lists it.
func (e Entry) name() string {
	if e.Subsection == "" {
		return e.Section + "." + e.Key
	}
	return e.Section + "." + e.Subsection + "." + e.Key
}

// MaxSize is the size of the largest file that is parsed, in bytes.
const MaxSize = 256 << 10

// Parse reads the text of a configuration file. The error says in which line something is that git reads in
// another way, or does not read at all, or that only some versions of it read alike.
func Parse(text []byte) ([]Entry, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("more than %d bytes", MaxSize)
	}
	p := parser{rest: string(text), line: 1}
	for i := range len(p.rest) {
		// A carriage return is part of a line's end to git, but not everywhere; NUL ends the value.
		if c := p.rest[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return nil, fmt.Errorf("line %d: a control character", 1+strings.Count(p.rest[:i], "\n"))
		}
	}
	for p.rest != "" {
		if err := p.next(); err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
	return p.entries, nil
}

type parser struct {
	rest                string
	line                int
	section, subsection string
	entries             []Entry
}

// next reads one section header, variable or comment.
func (p *parser) next() error {
	switch c := p.rest[0]; {
	case c == '\n':
		p.rest = p.rest[1:]
		p.line++
	case c == ' ' || c == '\t':
		p.rest = p.rest[1:]
	case c == '#' || c == ';':
		_, after, _ := strings.Cut(p.rest, "\n")
		p.rest = after
		p.line++
	case c == '[':
		p.rest = p.rest[1:]
		return p.header()
	case isLetter(c):
		return p.variable()
	default:
		return errors.New("neither a section, a variable nor a comment")
	}
	return nil
}

// header reads what follows the [ of a section.
func (p *parser) header() error {
	name := p.keyChars()
	if name == "" {
		return errors.New("a section without a name")
	}
	p.section, p.subsection = strings.ToLower(name), ""
	if strings.HasPrefix(p.rest, "]") {
		p.rest = p.rest[1:]
		return nil
	}
	trimmed := strings.TrimLeft(p.rest, " \t")
	if trimmed == p.rest || !strings.HasPrefix(trimmed, `"`) {
		return errors.New("not the header of a section") // [a.b] is an old form that folds the case of b
	}
	var sub strings.Builder
	for i := 1; i < len(trimmed); i++ {
		switch c := trimmed[i]; c {
		case '\n':
			return errors.New("a subsection that is not closed")
		case '\\':
			i++
			if i == len(trimmed) || trimmed[i] == '\n' {
				return errors.New("a subsection that is not closed")
			}
			sub.WriteByte(trimmed[i])
		case '"':
			if i+1 == len(trimmed) || trimmed[i+1] != ']' {
				return errors.New("not the end of a section's header")
			}
			if sub.Len() == 0 {
				return errors.New("an empty subsection")
			}
			p.subsection, p.rest = sub.String(), trimmed[i+2:]
			return nil
		default:
			sub.WriteByte(c)
		}
	}
	return errors.New("a subsection that is not closed")
}

// variable reads a key and its value.
func (p *parser) variable() error {
	e := Entry{Section: p.section, Subsection: p.subsection, Key: strings.ToLower(p.keyChars())}
	if e.Section == "" {
		return errors.New("a variable outside of a section")
	}
	p.rest = strings.TrimLeft(p.rest, " \t")
	switch {
	case p.rest == "" || p.rest[0] == '\n':
		e.Implicit = true
	case p.rest[0] == '=':
		p.rest = p.rest[1:]
		var err error
		if e.Value, err = p.value(); err != nil {
			return err
		}
	default:
		return errors.New("no = behind a key")
	}
	p.entries = append(p.entries, e)
	return nil
}

// value reads what follows a =, to the end of its line or, where that ends in a backslash, of the next one.
func (p *parser) value() (string, error) {
	var v strings.Builder
	quoted, spaces, begun := false, 0, false
	for i := 0; ; i++ {
		if i == len(p.rest) || p.rest[i] == '\n' {
			if quoted {
				return "", errors.New("a quote that is not closed")
			}
			p.rest = p.rest[i:]
			return v.String(), nil
		}
		c := p.rest[i]
		if !quoted {
			switch c {
			case ' ':
				if begun {
					spaces++
				}
				continue
			case '\t':
				// At the ends it is dropped. Between words it becomes a space, or since git 2.45 stays.
				if begun && !p.endsAt(i) {
					return "", errors.New("a tab in a value without quotes")
				}
				continue
			case '#', ';':
				for i < len(p.rest) && p.rest[i] != '\n' {
					i++
				}
				p.rest = p.rest[i:]
				return v.String(), nil
			}
		}
		for ; spaces > 0; spaces-- {
			v.WriteByte(' ')
		}
		switch c {
		case '"':
			quoted = !quoted
			continue
		case '\\':
			i++
			if i == len(p.rest) {
				return "", errors.New("a backslash at the end")
			}
			switch p.rest[i] {
			case '\n':
				p.line++
				continue
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case 'n':
				c = '\n'
			case '\\', '"':
				c = p.rest[i]
			default:
				return "", fmt.Errorf("\\%c in a value", p.rest[i])
			}
		}
		v.WriteByte(c)
		begun = true
	}
}

// endsAt reports whether only blanks and a comment follow in the line.
func (p *parser) endsAt(i int) bool {
	rest := strings.TrimLeft(p.rest[i:], " \t")
	return rest == "" || strings.ContainsRune("\n#;", rune(rest[0]))
}

// keyChars takes the letters, digits and dashes at the front.
func (p *parser) keyChars() string {
	n := 0
	for n < len(p.rest) && (isLetter(p.rest[n]) || isDigit(p.rest[n]) || p.rest[n] == '-') {
		n++
	}
	taken := p.rest[:n]
	p.rest = p.rest[n:]
	return taken
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
