package tools

import (
	"bytes"
	"encoding/json"
)

// idScanner finds the id of a JSON-RPC message that is too long to be decoded, in a stream and
// without keeping it. It knows only as much of JSON as it takes to tell the members of the outermost
// object from what is inside them; what is no JSON has no id.
type idScanner struct {
	id     json.RawMessage // the id, when it came and is one
	method bool            // there is a method

	depth    int
	inString bool
	escaped  bool   // the byte before was a backslash in a string
	key      string // of the member whose value comes, with its quotes
	token    []byte // the string or literal that stands at depth 1, up to maxToken bytes
}

// maxToken bounds a token; a longer one is no id that we keep.
const maxToken = 1 << 10

func (s *idScanner) isRequest() bool { return s.method && s.id != nil }

func (s *idScanner) write(p []byte) {
	for len(p) > 0 {
		if s.inString && !s.escaped && s.depth != 1 {
			// Nearly all of a long message is one string deep inside it.
			n := bytes.IndexAny(p, `"\`)
			if n < 0 {
				return
			}
			p = p[n:]
		}
		s.writeByte(p[0])
		p = p[1:]
	}
}

func (s *idScanner) writeByte(b byte) {
	if s.inString {
		s.keep(b)
		switch {
		case s.escaped:
			s.escaped = false
		case b == '\\':
			s.escaped = true
		case b == '"':
			s.inString = false
		}
		return
	}
	switch b {
	case '"':
		s.inString = true
		if s.depth == 1 {
			s.token = s.token[:0]
		}
		s.keep(b)
	case '{', '[':
		s.depth++
	case '}', ']':
		if s.depth == 1 {
			s.member()
		}
		s.depth--
	case ':':
		if s.depth == 1 {
			s.key = string(s.token)
			s.token = s.token[:0]
		}
	case ',':
		if s.depth == 1 {
			s.member()
		}
	case ' ', '\t', '\r':
	default:
		s.keep(b)
	}
}

// keep adds to the token at depth 1.
func (s *idScanner) keep(b byte) {
	if s.depth == 1 && len(s.token) <= maxToken {
		s.token = append(s.token, b)
	}
}

// member takes a member of the outermost object that is complete.
func (s *idScanner) member() {
	switch s.key {
	case `"id"`:
		s.id = nil
		if len(s.token) <= maxToken && idKey(s.token) != "" {
			s.id = bytes.Clone(s.token)
		}
	case `"method"`:
		s.method = true
	}
	s.key, s.token = "", s.token[:0]
}
