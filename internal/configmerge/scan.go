package configmerge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// document is a JSON text with an object, or with nothing but space and comments.
type document struct {
	root  *object
	value map[string]any
}

// object is where the parts of an object are in a text.
type object struct {
	open, close int // its braces
	members     []member
	comma       bool // one stands after the last member
}

type member struct {
	name            string
	key, value, end int // where key and value begin, and what follows the value
}

// maxNesting bounds how deep objects and arrays lie in one another.
const maxNesting = 200

// parse reads a text as JSON with comments.
func parse(text []byte) (*document, error) {
	if !utf8.Valid(text) {
		return nil, &SyntaxError{1, "it is not UTF-8"}
	}
	s := scanner{text: text, at: len(text) - len(bytes.TrimPrefix(text, []byte("\ufeff")))}
	if err := s.space(); err != nil {
		return nil, err
	}
	if s.at == len(text) {
		return &document{}, nil
	}
	start := s.at
	if text[start] != '{' {
		return nil, s.fail("an object was expected")
	}
	root, err := s.object(0)
	if err != nil {
		return nil, err
	}
	end := s.at
	if err := s.space(); err != nil {
		return nil, err
	}
	if s.at != len(text) {
		return nil, s.fail("there is more after the object")
	}
	value, err := decode(strict(text, start, end))
	if err != nil {
		return nil, err
	}
	return &document{root, value}, nil
}

// strict is a value of a text that was parsed, without comments and commas after the last member.
func strict(text []byte, from, to int) []byte {
	s := scanner{text: text[:to], at: from}
	_ = s.skip(0)
	out := bytes.Clone(text[from:to])
	for _, b := range s.blank {
		for i := b[0]; i < b[1]; i++ {
			out[i-from] = ' '
		}
	}
	return out
}

// scanner goes through a text.
type scanner struct {
	text  []byte
	at    int
	blank [][2]int // what strict JSON does not have
}

func (s *scanner) fail(format string, args ...any) error {
	return &SyntaxError{1 + bytes.Count(s.text[:s.at], []byte("\n")), fmt.Sprintf(format, args...)}
}

// space passes over space and comments.
func (s *scanner) space() error {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0:
			s.at++
		case bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			s.pass(n)
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return s.fail("a comment does not end")
			}
			s.pass(n + 4)
		default:
			return nil
		}
	}
	return nil
}

// pass passes over what strict JSON does not have.
func (s *scanner) pass(n int) {
	s.blank = append(s.blank, [2]int{s.at, s.at + n})
	s.at += n
}

// next is the byte at hand after space and comments; 0 at the end.
func (s *scanner) next() (byte, error) {
	if err := s.space(); err != nil || s.at == len(s.text) {
		return 0, err
	}
	return s.text[s.at], nil
}

// skip passes over a value.
func (s *scanner) skip(depth int) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	switch c {
	case '{':
		_, err := s.object(depth)
		return err
	case '[':
		_, err := s.list(depth, ']', func() error { return s.skip(depth + 1) })
		return err
	case '"':
		_, err := s.string()
		return err
	}
	start := s.at
	for s.at < len(s.text) && bytes.IndexByte([]byte(" \t\r\n,:[]{}\"/"), s.text[s.at]) < 0 {
		s.at++
	}
	if !json.Valid(s.text[start:s.at]) {
		s.at = start
		return s.fail("a value was expected")
	}
	return nil
}

// list passes over what stands between brackets, with commas in between, and reports whether one stands last.
func (s *scanner) list(depth int, end byte, one func() error) (comma bool, err error) {
	if depth > maxNesting {
		return false, s.fail("it is nested too deep")
	}
	s.at++
	last := -1 // where the last comma is
	for first := true; ; first = false {
		c, err := s.next()
		if err != nil {
			return false, err
		}
		if c == end && (first || last >= 0) {
			s.at++
			if last >= 0 {
				s.blank = append(s.blank, [2]int{last, last + 1})
			}
			return last >= 0, nil
		}
		if err := one(); err != nil {
			return false, err
		}
		last = -1
		if c, err = s.next(); err != nil {
			return false, err
		}
		switch c {
		case ',':
			last = s.at
			s.at++
		case end:
			s.at++
			return false, nil
		default:
			return false, s.fail("a comma or %q was expected", end)
		}
	}
}

// object passes over an object.
func (s *scanner) object(depth int) (*object, error) {
	if s.at == len(s.text) || s.text[s.at] != '{' {
		return nil, s.fail("an object was expected")
	}
	o := &object{open: s.at}
	var err error
	o.comma, err = s.list(depth, '}', func() error {
		m := member{key: s.at}
		var err error
		if m.name, err = s.string(); err != nil {
			return err
		}
		if c, err := s.next(); err != nil || c != ':' {
			return s.fail("a colon was expected after %q", m.name)
		}
		s.at++
		if err := s.space(); err != nil {
			return err
		}
		m.value = s.at
		err = s.skip(depth + 1)
		m.end = s.at
		o.members = append(o.members, m)
		return err
	})
	o.close = s.at - 1
	return o, err
}

// string passes over a string.
func (s *scanner) string() (text string, err error) {
	start := s.at
	if s.at == len(s.text) || s.text[s.at] != '"' {
		return "", s.fail("a string was expected")
	}
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			if err := json.Unmarshal(s.text[start:s.at], &text); err != nil {
				s.at = start
				return "", s.fail("a string is not valid: %v", err)
			}
			return text, nil
		}
	}
	s.at = start
	return "", s.fail("a string does not end")
}
