package configmerge

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// TOML sets keys in the table at path, which is made at the end of the text if it is not there. value is
// what they mean and literals how they are written, in order. The result is text itself if there is nothing to
// change.
func TOML(text []byte, path []string, value map[string]any, literals []Literal) ([]byte, error) {
	want, err := decodeTOML(text)
	if err != nil {
		return nil, err
	}
	if err := set(want, path, value); err != nil {
		return nil, err
	}
	now, err := decodeTOML(text)
	if err != nil || asMeant(now, want) == nil {
		return text, err
	}
	out, found := setInTable(text, path, now, literals)
	if !found && definedOtherwise(text, path) {
		return nil, asMeant(nil, want)
	}
	if !found {
		line := newline(text)
		block := "[" + strings.Join(path, ".") + "]" + line
		for _, l := range literals {
			block += l.Key + " = " + l.Value + line
		}
		if out = bytes.TrimRight(text, " \t\r\n"); len(out) > 0 {
			block = line + line + block
		}
		out = slices.Concat(out, []byte(block))
	}
	got, err := decodeTOML(out)
	if err != nil {
		return nil, asMeant(nil, want)
	}
	return out, asMeant(got, want)
}

// Literal is a key, which needs no quotes, with a value as TOML writes it.
type Literal struct{ Key, Value string }

func decodeTOML(text []byte) (map[string]any, error) {
	value := map[string]any{}
	_, err := toml.Decode(string(text), &value)
	var wrong toml.ParseError
	if errors.As(err, &wrong) {
		return nil, &SyntaxError{wrong.Position.Line, wrong.Message}
	}
	return value, err
}

// setInTable edits the table whose header has this path; false if there is no such header.
func setInTable(text []byte, path []string, now map[string]any, literals []Literal) (out []byte, found bool) {
	statements := statementsOf(text)
	start := slices.IndexFunc(statements, func(s statement) bool { return s.header && slices.Equal(s.path(text), path) })
	if start < 0 {
		return nil, false
	}
	end := start + 1
	for end < len(statements) && !statements[end].header {
		end++
	}
	table := statements[start:end]
	had := now
	for _, key := range path {
		had, _ = had[key].(map[string]any)
	}
	line, last := newline(text), table[len(table)-1].end
	var added string
	edits := map[int]string{} // by statement
	for _, l := range literals {
		i := slices.IndexFunc(table, func(s statement) bool { return !s.header && slices.Equal(s.path(text), []string{l.Key}) })
		was, err := decodeTOML([]byte("is = " + l.Value))
		switch {
		case i < 0:
			added += line + l.Key + " = " + l.Value
		case err != nil || asMeant(had[l.Key], was["is"]) != nil:
			edits[i] = l.Value
		}
	}
	out = splice(text, last, last, added)
	for _, i := range slices.Backward(slices.Sorted(maps.Keys(edits))) {
		out = splice(out, table[i].value, table[i].end, edits[i])
	}
	return out, true
}

// definedOtherwise reports whether the table at path, or one that it would be in, is defined by keys, as an inline
// table or with dots. A header can't define it then as well, though not every reader of TOML minds.
func definedOtherwise(text []byte, path []string) bool {
	var header []string
	for _, s := range statementsOf(text) {
		if s.header {
			header = s.path(text)
			continue
		}
		full := slices.Concat(header, s.path(text))
		if n := min(len(full), len(path)); slices.Equal(full[:n], path[:n]) && len(header) < len(path) {
			return true
		}
	}
	return false
}

// statement is where a header or a key with its value is in a text.
type statement struct {
	header            bool
	start, value, end int // the value begins after the equals sign and space
}

// path is what a header or a key names.
func (s statement) path(text []byte) []string {
	named := string(text[s.start:s.end])
	if !s.header {
		named = string(text[s.start:s.value]) + "0"
	}
	meta, err := toml.Decode(named, &map[string]any{})
	if err != nil || len(meta.Keys()) == 0 {
		return nil
	}
	keys := meta.Keys()
	return keys[len(keys)-1]
}

// statementsOf takes a valid text apart.
func statementsOf(text []byte) []statement {
	var all []statement
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case bytes.IndexByte([]byte(" \t\r\n"), c) >= 0:
			at++
		case c == '#':
			at = lineEnd(text, at)
		case c == '[':
			s := statement{header: true, start: at}
			at = valueEnd(text, at)
			s.end = at
			all = append(all, s)
		default:
			s := statement{start: at}
			for at < len(text) && text[at] != '=' {
				at = tokenEnd(text, at)
			}
			for at++; at < len(text) && (text[at] == ' ' || text[at] == '\t'); at++ {
			}
			s.value = min(at, len(text))
			at = valueEnd(text, s.value)
			s.end = at
			all = append(all, s)
		}
	}
	return all
}

func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

// valueEnd is where a value ends: at the end of its line or a comment, unless brackets are open.
func valueEnd(text []byte, at int) int {
	end := at
	for open := 0; at < len(text); {
		switch c := text[at]; c {
		case '[', '{':
			open++
		case ']', '}':
			open--
		case '\r', '\n', '#':
			if open <= 0 {
				return end
			}
			if c == '#' {
				at = lineEnd(text, at)
				continue
			}
		}
		space := text[at] == ' ' || text[at] == '\t'
		if at = tokenEnd(text, at); !space {
			end = at
		}
	}
	return end
}

// tokenEnd passes over a string, or else one byte.
func tokenEnd(text []byte, at int) int {
	for _, quote := range []string{`"""`, "'''", `"`, "'"} {
		if !bytes.HasPrefix(text[at:], []byte(quote)) {
			continue
		}
		for at += len(quote); at < len(text); at++ {
			if text[at] == '\\' && quote[0] == '"' {
				at++
			} else if bytes.HasPrefix(text[at:], []byte(quote)) {
				at += len(quote)
				for len(quote) == 3 && at < len(text) && text[at] == quote[0] { // up to two more belong to the text
					at++
				}
				return at
			}
		}
		return len(text)
	}
	return at + 1
}
