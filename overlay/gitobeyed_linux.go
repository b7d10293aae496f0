package overlay

import (
	"path/filepath"
	"slices"
	"strings"

	"airlock/internal/gitconfig"
)

// SetGitUser says whose configuration of git counts. It is to be called before the first Begin; the files are
// read at each landing.
func (w *Workspace) SetGitUser(u GitUser) { w.gitUser = u }

// obeyed protects what git's configuration, the person's and that of the repository at the root, sends git to.
func (c *collector) obeyed() {
	o := gitconfig.Follow(c.gitUser.Home, c.gitUser.Files...)
	for _, file := range o.Files {
		c.protectTarget(file)
	}
	for _, hooks := range o.Hooks {
		if filepath.IsAbs(hooks) {
			c.protectTarget(hooks)
		} else {
			c.protectGlob("**/" + hooksGlob(hooks)) // from the top of any repository
		}
	}
	c.obeyedBy("")
}

// obeyedBy protects what the configuration of the repository with its top at path, or of the git directory
// path, sends git to.
func (c *collector) obeyedBy(path string) {
	top := filepath.Join(c.host.path, filepath.FromSlash(path))
	own := slices.Concat(gitconfig.OfRepository(top), gitconfig.OfGitDirectory(top))
	o := gitconfig.Follow(c.gitUser.Home, own...)
	for _, file := range o.Files[len(own):] { // its own are judged as part of the git directory
		c.protectTarget(file)
	}
	for _, hooks := range o.Hooks {
		if !filepath.IsAbs(hooks) {
			hooks = filepath.Join(top, hooks)
		}
		if filepath.Clean(hooks) == top && path != "" {
			c.protectGlob("/" + globEscaper.Replace(path) + "/{hook}")
			continue
		}
		c.protectTarget(hooks)
	}
}

// protectTarget protects what lies at an absolute path, and where that leads through links, if it is in the
// workspace.
func (c *collector) protectTarget(path string) {
	for _, p := range []string{filepath.Clean(path), realTarget(path)} {
		if rel, err := filepath.Rel(c.host.path, p); err == nil && filepath.IsLocal(rel) {
			c.protectGlob("/" + hooksGlob(rel))
		}
	}
}

// hooksGlob is a pattern for a path, and for what lies in it. In a directory that is the whole workspace, or
// the whole repository, only what has the name of a hook counts.
func hooksGlob(path string) string {
	path = strings.Trim(filepath.ToSlash(filepath.Clean(path)), "/")
	if path == "." || path == "" {
		return "{hook}"
	}
	return globEscaper.Replace(path)
}

var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// hookNames are the programs that git runs from a directory of hooks.
var hookNames = []string{
	"applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-*", "post-*", "pre-*", "prepare-commit-msg",
	"proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate", "update",
}

func (c *collector) protectGlob(pattern string) {
	if dir, found := strings.CutSuffix(pattern, "{hook}"); found {
		for _, name := range hookNames {
			c.protectGlob(dir + name)
		}
		return
	}
	if c.targets[pattern] {
		return
	}
	if c.targets == nil {
		c.targets = map[string]bool{}
	}
	c.targets[pattern] = true
	_ = c.filter.add(pattern) // it has no characters of a glob but those that are ours
}

// realTarget follows the links of the part of path that exists.
func realTarget(path string) string {
	rest := ""
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
