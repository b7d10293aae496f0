package overlay

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// quoteLimit is the longest result of Quote, in bytes.
const quoteLimit = 200

// cutMark ends what Quote had to cut. It stands after the closing quote, where no whole name has it.
const cutMark = "…"

// Quote makes a path printable on one line, reversibly: a path of printable characters without a
// double quote stays as it is, anything else is written as a Go string literal, where bytes that are
// not UTF-8 are \xNN and control and bidirectional characters are escapes. So a result that begins
// with a double quote is a literal, and every other is the path itself.
//
// The result is valid UTF-8 of at most 200 bytes. What is longer becomes the literal of its
// beginning, followed by "…".
func Quote(path string) string { return quote(path, plain) }

// quote leaves what isPlain says as it is, if it is short.
func quote(path string, isPlain func(string) bool) string {
	if isPlain(path) && len(path) <= quoteLimit {
		return path
	}
	if q := strconv.Quote(path); len(q) <= quoteLimit {
		return q
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(path); {
		_, n := utf8.DecodeRuneInString(path[i:])
		q := strconv.Quote(path[i : i+n])
		q = q[1 : len(q)-1]
		if b.Len()+len(q)+len(`"`+cutMark) > quoteLimit {
			break
		}
		b.WriteString(q)
		i += n
	}
	b.WriteString(`"` + cutMark)
	return b.String()
}

// Literal is [Quote] without its limit: for machines.
func Literal(path string) string {
	if plain(path) {
		return path
	}
	return strconv.Quote(path)
}

// quoteItem is [Quote] for a path that stands among others and among words of ours on one line. It also
// quotes what could pass for more than one path or for those words: "a, b", "a; 1 conflict: b".
func quoteItem(path string) string {
	return quote(path, func(path string) bool {
		return plain(path) && strings.TrimSpace(path) == path &&
			!slices.ContainsFunc(itemWords, func(w string) bool { return strings.Contains(path, w) })
	})
}

// itemWords are what separates the paths of a line, and what stands beside one.
var itemWords = []string{", ", "; ", ": ", " (", " and ", " changed "}

// plain reports whether path can stand for itself.
func plain(path string) bool {
	if path == "" || !utf8.ValidString(path) {
		return false
	}
	for _, r := range path {
		// IsPrint is false for control characters, line separators, and format characters, which
		// the bidirectional ones are.
		if r == '"' || !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}
