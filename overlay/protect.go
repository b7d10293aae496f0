package overlay

import (
	"fmt"
	"slices"
	"strings"
)

// builtinProtected are the paths whose content other programs run or obey later, outside of any
// sandbox: shells, editors, agents, git. They match at any depth and without regard to case, since
// a workspace may be used from a filesystem that has none. What git directories hold is judged by
// gitProtected, which needs to know where they begin.
var builtinProtected = []string{
	".airlock.toml",
	".gitmodules",
	".envrc",
	".mcp.json",
	".vscode/**", ".idea/**", ".cursor/**", ".codex/**", ".agents/**", ".gemini/**", ".zed/**",
	".devcontainer/**",
	"*.code-workspace",
	".claude/settings*.json", ".claude/hooks/**", ".claude/commands/**", ".claude/agents/**",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
	".profile", ".xprofile", ".xsessionrc", ".xinitrc",
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
	".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout",
	".config/fish/**",
}

// filter decides by name alone which changes of a run may not land. It holds no state.
type filter struct {
	protect []glob
	// leading are the directories that protected patterns begin with: a link in the place of one
	// would put a protected path elsewhere, under a name that nothing protects.
	leading []glob
	ignore  []glob
	hidden  Hidden
	// wasHidden is what was hidden from a run that waited for review.
	wasHidden Hidden
	// shared is set where the workspace is a repository that a linked worktree shares with others.
	shared *sharedGit
}

func newFilter(c Config) (filter, error) {
	var f filter
	for _, pattern := range slices.Concat(builtinProtected, c.Protect) {
		if !strings.HasPrefix(pattern, "/") {
			pattern = "**/" + pattern
		}
		if err := f.add(pattern); err != nil {
			return filter{}, fmt.Errorf("workspace.protect: %w", err)
		}
	}
	for _, pattern := range c.Ignore {
		g, err := compileGlob(pattern)
		if err != nil {
			return filter{}, fmt.Errorf("workspace.ignore: %w", err)
		}
		f.ignore = append(f.ignore, g)
	}
	return f, nil
}

// add protects one more pattern, which begins with a slash or with "**/".
func (f *filter) add(pattern string) error {
	g, err := compileGlob(pattern)
	if err != nil {
		return err
	}
	g.foldCase = true
	// Copies of the filter share what is there.
	f.protect = append(slices.Clip(f.protect), g)
	for i := 1; i < len(g.names); i++ {
		if last := g.names[i-1]; strings.Trim(last, "*") != "" {
			f.leading = append(slices.Clip(f.leading), glob{names: g.names[:i], foldCase: true})
		}
	}
	return nil
}

// hides reports whether a path is hidden from runs, or was from the one that is judged.
func (f filter) hides(path string, isDir bool) bool {
	return f.hidden.Hides(path, isDir) || f.wasHidden.Hides(path, isDir)
}

// ignored reports whether changes of the path neither land nor are reported.
func (f filter) ignored(path string, isDir bool) bool {
	names := strings.Split(path, "/")
	return slices.ContainsFunc(f.ignore, func(g glob) bool { return g.matchNames(names, isDir) })
}

// fixed reports whether what the workspace has at the path is neither replaced nor removed.
func (f filter) fixed(path string, host inode) bool {
	return f.shared != nil && host.kind != absent && f.shared.fixed(path)
}

// protected reports whether changes of the path never land. gits are the git directories that the
// path lies in. All of them count, not the innermost alone: a run can make a git directory of .git/hooks.
func (f filter) protected(path string, k kind, gits []string) bool {
	if f.shared != nil && (k == symlink || !f.shared.mayHold(path, k == directory)) {
		return true
	}
	for _, git := range gits {
		rel := path
		if git != "" {
			rel = strings.TrimPrefix(path, git+"/")
		}
		// git makes no links there, and writes through those that it finds: a reflog, to any file.
		if k == symlink || gitProtected(rel, k) {
			return true
		}
	}
	if k != directory && isDotGit(baseName(path)) {
		return true // names a git directory that could lie anywhere
	}
	if k == symlink {
		// match also takes what lies in a directory of that name, hence the look at the length.
		for _, g := range f.leading {
			if g.match(path, false) && !g.match(parentPath(path), true) {
				return true
			}
		}
	}
	names := strings.Split(path, "/")
	return slices.ContainsFunc(f.protect, func(g glob) bool { return g.matchNames(names, k == directory) })
}

// onlyConfig reports whether path is protected for the one reason that it is the configuration of the
// git directory that it lies in, so that its content decides.
func (f filter) onlyConfig(path string, gits []string) bool {
	if len(gits) == 0 {
		return false
	}
	last := len(gits) - 1
	return path == joinPath(gits[last], "config") && !f.protected(path, regular, gits[:last])
}

// gitProtected reports whether git runs or obeys what lies at rel, a path relative to a git
// directory: hooks, its configuration, the files that send it to another directory, and those that name
// remotes in the way of old. Also in worktrees/NAME, which git takes for git directories although they
// hold neither objects nor refs.
func gitProtected(rel string, k kind) bool {
	names := strings.Split(strings.ToLower(rel), "/")
	if len(names) > 2 && names[0] == "worktrees" {
		names = names[2:]
	}
	first := names[0]
	return (first == "remotes" || first == "branches") && (len(names) > 1 || k != directory) || first == "hooks" || first == "commondir" || first == "gitdir" || strings.HasPrefix(first, "config")
}

// isGitDir reports whether git would accept a directory as a git directory, from what it holds.
func isGitDir(name string, holds func(string) bool) bool {
	if isDotGit(name) {
		return true
	}
	return holds("HEAD") && (holds("objects") && holds("refs") || holds("commondir"))
}

// isDotGit reports whether a name is that of a git directory on some filesystem: without regard to case, to
// what HFS+ passes over in names, or by the short name that NTFS gives it.
func isDotGit(name string) bool {
	name = strings.Map(func(r rune) rune {
		if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, name)
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// gitEssential are the entries that make a directory a git directory.
var gitEssential = []string{"HEAD", "objects", "refs", "commondir"}

// gitDangerous are entries that git obeys once the directory is a git directory, or writes to through links
// that landed in them when it was none.
var gitDangerous = []string{
	"config", "config.worktree", "hooks", "commondir", "gitdir", "remotes", "branches",
	"objects", "refs", "logs", "info", "index", "packed-refs", "modules", "worktrees", "rebase-merge", "sequencer",
}
