package overlay

import (
	"strings"
)

// coreWorktree finds core.worktree in the text of a git configuration. It reads what git and people write,
// and takes what it can't read for not set: what it finds only serves as the sign of a person's will.
func coreWorktree(text []byte) (path string, set bool) {
	core := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			name, rest, _ := strings.Cut(line[1:], "]")
			core = strings.EqualFold(strings.TrimSpace(name), "core")
			line = strings.TrimSpace(rest)
		}
		key, value, found := strings.Cut(line, "=")
		if !core || !found || !strings.EqualFold(strings.TrimSpace(key), "worktree") {
			continue
		}
		path, set = configValue(strings.TrimSpace(value))
	}
	return path, set && path != ""
}

// configValue takes the quotes, escapes and comments off a value that ends on its line.
func configValue(text string) (value string, ok bool) {
	var b strings.Builder
	quoted, trailing := false, 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			quoted = !quoted
			continue
		case c == '\\':
			if i++; i == len(text) {
				return "", false // it goes on on the next line
			}
			switch text[i] {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case '\\', '"':
				c = text[i]
			default:
				return "", false
			}
		case (c == '#' || c == ';') && !quoted:
			return b.String()[:b.Len()-trailing], true
		case (c == ' ' || c == '\t') && !quoted:
			b.WriteByte(c)
			trailing++
			continue
		}
		b.WriteByte(c)
		trailing = 0
	}
	return b.String()[:b.Len()-trailing], !quoted
}
