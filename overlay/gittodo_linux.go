package overlay

import (
	"io"
	"strings"

	"airlock/internal/pattern"
)

// A rebase that is not finished has a list of what it is still to do, commands to run included:
// git rebase --continue runs them.

// todoLimit is how much of such a list is looked through, in bytes. A longer one is withheld.
const todoLimit = 1 << 20

var todoCommand = pattern.Lazy(`(?m)^[ \t]*(exec|x)([ \t\r]|$)`)

// isTodo reports whether a path in a git directory could be such a list.
func isTodo(path string) bool {
	name := baseName(path)
	return name == "todo" || strings.HasPrefix(name, "git-rebase-todo")
}

// todoRuns returns why a list of what is to do does not land, "" if it does.
func (c *collector) todoRuns(e entry) (string, error) {
	f, err := c.upper.file(e.path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, todoLimit+1))
	if err != nil {
		return "", c.upper.fail("read", e.path, err)
	}
	if len(text) > todoLimit || todoCommand().Match(text) {
		return whyProtected + ": git rebase --continue would run a command", nil
	}
	return "", nil
}
