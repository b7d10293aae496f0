package main

import "bytes"

// maxDepth bounds how deep tables and lists may be nested, and how many parts a dotted key may have. The
// configuration needs three. The decoder's time grows with the square of the depth and worse: 20,000
// braces keep it busy for minutes, and they fit into a project's policy.
const maxDepth = 16

// tooDeep returns the line on which TOML text goes deeper than maxDepth, 0 if it does not. It tells
// strings and comments from the rest and knows nothing else of TOML.
func tooDeep(text []byte) (line int) {
	line = 1
	depth, dots := 0, 0
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '"', '\'':
			n, _ := stringLength(text[i:], c)
			line += bytes.Count(text[i:i+n], []byte("\n"))
			i += n
			continue
		case '#':
			if n := bytes.IndexByte(text[i:], '\n'); n >= 0 {
				i += n
				continue
			}
			return 0
		case '\n':
			line++
			dots = 0
		case '=', ',':
			dots = 0
		case '.':
			dots++
		case '{', '[':
			depth++
		case '}', ']':
			depth = max(depth-1, 0)
		}
		if depth > maxDepth || dots > maxDepth {
			return line
		}
		i++
	}
	return 0
}

// stringLength returns how many bytes the string at the beginning of text takes, with its quotes, and whether it is closed. One
// that is not ends with its line, or with the text if it may go over several lines.
func stringLength(text []byte, quote byte) (n int, closed bool) {
	three := bytes.Repeat([]byte{quote}, 3)
	long := bytes.HasPrefix(text, three)
	i := 1
	if long {
		i = 3
	}
	for i < len(text) {
		switch {
		case text[i] == '\\' && quote == '"':
			i++ // and what is escaped
		case text[i] == '\n' && !long:
			return i, false
		case text[i] == quote && !long:
			return i + 1, true
		case long && bytes.HasPrefix(text[i:], three):
			i += 3
			for n := 0; n < 2 && i < len(text) && text[i] == quote; n++ {
				i++ // one or two quotes may stand before the closing three
			}
			return i, true
		}
		i++
	}
	return len(text), false
}
