package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// opening is a string or a bracket that TOML text begins.
type opening struct {
	at   int // in bytes
	line int
	what byte // one of " ' [ {
}

// unclosed finds what was begun before an offset of TOML text and is closed nowhere: whatever the decoder says of such text, it
// is where that begins that has to be mended. It tells strings and comments from the rest and knows nothing else of TOML. A
// string that may not go over several lines and does is taken for one that is not closed.
func unclosed(text []byte, before int) (opening, bool) {
	var open []opening
	line := 1
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '"', '\'':
			n, closed := stringLength(text[i:], c)
			if !closed && i <= before {
				return opening{i, line, c}, true
			}
			line += bytes.Count(text[i:i+n], []byte("\n"))
			i += n
			continue
		case '#':
			n := bytes.IndexByte(text[i:], '\n')
			if n < 0 {
				n = len(text) - i
			}
			i += n
			continue
		case '\n':
			line++
		case '[', '{':
			open = append(open, opening{i, line, c})
		case ']', '}':
			if n := len(open); n > 0 && open[n-1].what == c-2 { // '[' is two before ']', '{' two before '}'
				open = open[:n-1]
			}
		}
		i++
	}
	if len(open) > 0 && open[0].at <= before {
		return open[0], true
	}
	return opening{}, false
}

// String says what is not closed, without anything of the text.
func (o opening) String() string {
	if o.what == '"' || o.what == '\'' {
		return "the text that begins here is not closed by a quote"
	}
	return fmt.Sprintf("the %q that stands here is not closed by %q", o.what, o.what+2)
}

// lineAt is the line of an offset of a document, which is one that the document has.
func (d document) lineAt(offset int) int {
	text := bytes.TrimSuffix(d.text, []byte("\n"))
	return 1 + bytes.Count(text[:min(max(offset, 0), len(text))], []byte("\n"))
}

// quoted is a line of the document as a person may be shown it: printable, and no longer than a terminal's. It is "" where that
// could tell what is nobody else's business.
func (d document) quoted(line int, key string) string {
	const most = 100
	if d.secret || d.only != "" {
		return ""
	}
	lines := bytes.Split(d.text, []byte("\n"))
	if line < 1 || line > len(lines) {
		return ""
	}
	text := strings.TrimRight(strings.ReplaceAll(string(lines[line-1]), "\t", "    "), " \r")
	if strings.Contains(text, "@") || !harmless(key, text) {
		return ""
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

// harmless reports whether what is at a key, or in a table, is surely none of mayHoldSecrets, and the line none that another key is
// on too, as in a table within braces. A name that is not known may be a misspelt one of theirs.
func harmless(key, line string) bool {
	begins, _, assigns := strings.Cut(line, "=")
	if key == "" {
		return !assigns && strings.HasPrefix(strings.TrimSpace(line), "[")
	}
	if mayHoldSecret(key) || slices.ContainsFunc(mayHoldSecrets, func(name string) bool { return inTable(name, key) }) {
		return false
	}
	return slices.ContainsFunc(configKeys(), func(known configKey) bool {
		if inTable(known.name, key) && known.name != key { // the decoder knows no more than the table
			return true
		}
		return inTable(key, known.name) && (!assigns || strings.HasSuffix("."+known.name, "."+strings.TrimSpace(begins)))
	})
}

// inTable reports whether a key is another one, or in the table that is called so.
func inTable(key, table string) bool { return key == table || strings.HasPrefix(key, table+".") }

func mayHoldSecret(key string) bool {
	return slices.ContainsFunc(mayHoldSecrets, func(name string) bool { return inTable(key, name) })
}

// mayHoldSecrets begin the names of keys whose values are not repeated in errors, which end up in logs.
var mayHoldSecrets = []string{"sandbox.env", "network.upstream", "packages.index", "packages.r.repo"}
