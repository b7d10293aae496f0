package overlay

import (
	"io"
	"path/filepath"
	"strings"
)

// A run that makes a worktree with "git worktree add" makes a pair of things that are protected each for itself,
// since either could name any repository: WORKTREE/.git, which names REPOSITORY/worktrees/NAME, and in there
// gitdir, which names WORKTREE/.git, and commondir. A pair that is new, and of which all three name each other and
// the repository that they lie in, gives git no configuration, hook or repository that it did not have before. So
// it lands.

// protected is [filter.protected], but for a new worktree.
func (c *collector) protected(path string, k kind, gits []string) bool {
	return c.filter.protected(path, k, gits) && (k != regular || !c.newWorktree(path))
}

// newWorktree reports whether the file at path is of the pair of a new worktree.
func (c *collector) newWorktree(path string) bool {
	dir := parentPath(path) // REPOSITORY/worktrees/NAME
	switch baseName(path) {
	case "gitdir", "commondir":
	case ".git":
		text, _ := strings.CutPrefix(c.pointer(path), "gitdir: ")
		dir = c.inWorkspace(parentPath(path), text)
	default:
		return false
	}
	trees := parentPath(dir)
	if dir == "" || baseName(trees) != "worktrees" || c.pointer(joinPath(dir, "commondir")) != "../.." {
		return false
	}
	repository := parentPath(trees)
	if trees == "worktrees" && !c.isRepository("") || trees != "worktrees" && !c.isRepository(repository) {
		return false
	}
	dot := c.inWorkspace(dir, c.pointer(joinPath(dir, "gitdir")))
	if baseName(dot) != ".git" || baseName(path) == ".git" && dot != path {
		return false
	}
	back, found := strings.CutPrefix(c.pointer(dot), "gitdir: ")
	if !found || c.inWorkspace(parentPath(dot), back) != dir {
		return false
	}
	for _, path := range []string{dir, dot} {
		if i, err := c.host.stat(path); err != nil || i.kind != absent {
			return false
		}
	}
	return true
}

// pointer reads a line of a small regular file of the layer, "" if there is none.
func (c *collector) pointer(path string) string {
	i, err := c.upper.stat(path)
	if err != nil || i.kind != regular || i.size > gitPointerLimit {
		return ""
	}
	f, err := c.upper.file(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, gitPointerLimit))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}

// inWorkspace makes a path of the workspace of a name that stands in a directory of it, "" if it leads elsewhere.
func (c *collector) inWorkspace(dir, name string) string {
	if name == "" || strings.ContainsRune(name, 0) {
		return ""
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(c.host.path, dir, name)
	}
	if filepath.Clean(name) != name || !within(name, c.host.path) || name == c.host.path {
		return ""
	}
	return strings.TrimPrefix(name, c.host.path+"/")
}

// isRepository reports whether a directory of the workspace is one, before and after the landing: one that git took for
// a git directory all the time has no configuration that a run could have landed in it.
func (c *collector) isRepository(path string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if i, err := c.host.stat(joinPath(path, name)); err != nil || i.kind == absent {
			return false
		}
		if side, err := (gitSide{c, true}).inLayer(joinPath(path, name)); err != nil || side == layerGone {
			return false
		}
	}
	return true
}
