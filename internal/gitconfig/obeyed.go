package gitconfig

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"airlock/internal/pattern"
	"airlock/internal/untrusted"
)

// Obeyed is what configuration files send git to.
type Obeyed struct {
	// Files are the files that were read, and those that they include, by absolute path. They need not exist.
	Files []string
	// Hooks are the values of core.hooksPath: absolute, or relative to the top of a repository.
	Hooks []string
}

// maxFiles bounds how many files one call of Follow reads.
const maxFiles = 64

// Follow reads configuration files and those that they include, whatever the condition of the include. home
// is what "~/" stands for. Files that are missing, too large, or no files are passed over. A file that Parse
// refuses is read loosely: rather too much is found than too little.
func Follow(home string, files ...string) Obeyed {
	o := Obeyed{Files: slices.Clone(files)}
	for i := 0; i < len(o.Files) && i < maxFiles; i++ {
		real, err := filepath.EvalSymlinks(o.Files[i])
		if err != nil {
			continue
		}
		text, err := untrusted.ReadFile(filepath.Dir(real), filepath.Base(real), MaxSize)
		if err != nil {
			continue
		}
		entries, err := Parse(text)
		if err != nil {
			entries = loosely(text)
		}
		for _, e := range entries {
			switch {
			case e.Value == "":
			case e.Section == "core" && e.Key == "hookspath":
				o.Hooks = append(o.Hooks, expand(home, e.Value))
			case (e.Section == "include" || e.Section == "includeif") && e.Key == "path":
				path := expand(home, e.Value)
				if !filepath.IsAbs(path) {
					path = filepath.Join(filepath.Dir(o.Files[i]), path)
				}
				if path = filepath.Clean(path); !slices.Contains(o.Files, path) {
					o.Files = append(o.Files, path)
				}
			}
		}
	}
	return o
}

func expand(home, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return path
}

var looseLine = pattern.Lazy(`(?im)\b(hookspath|path)[ \t]*=[ \t]*"?([^"\r\n]*)`)

// loosely finds what could be a hooks path or an include in a text that is not plain enough to be parsed.
func loosely(text []byte) []Entry {
	var found []Entry
	for _, m := range looseLine().FindAllSubmatch(text, -1) {
		e := Entry{Section: "include", Key: strings.ToLower(string(m[1])), Value: strings.TrimSpace(string(m[2]))}
		if e.Key == "hookspath" {
			e.Section = "core"
		}
		found = append(found, e)
	}
	return found
}

// OfRepository returns the configuration files of the repository whose work tree has its top at the
// absolute path top: in its .git, or in the directory that a file of that name leads to, and in the one that
// several work trees share.
func OfRepository(top string) []string {
	git := filepath.Join(top, ".git")
	if text, err := untrusted.ReadFile(top, ".git", 4096); err == nil {
		target, ok := strings.CutPrefix(string(text), "gitdir: ")
		if !ok {
			return nil
		}
		if git = strings.TrimRight(target, "\r\n"); !filepath.IsAbs(git) {
			git = filepath.Join(top, git)
		}
	}
	files := OfGitDirectory(git)
	if text, err := untrusted.ReadFile(git, "commondir", 4096); err == nil {
		common := strings.TrimRight(string(text), "\r\n")
		if !filepath.IsAbs(common) {
			common = filepath.Join(git, common)
		}
		files = append(files, OfGitDirectory(common)...)
	}
	return files
}

// OfGitDirectory returns the configuration files of a git directory.
func OfGitDirectory(git string) []string {
	return []string{filepath.Join(git, "config"), filepath.Join(git, "config.worktree")}
}

// OfUser returns the configuration files that hold for every repository of a user. environ is where
// XDG_CONFIG_HOME and git's own variables are looked up.
func OfUser(home string, environ func(string) string) []string {
	files := []string{"/etc/gitconfig", "/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig"}
	xdg := environ("XDG_CONFIG_HOME")
	if !filepath.IsAbs(xdg) {
		xdg = filepath.Join(home, ".config")
	}
	files = append(files, filepath.Join(xdg, "git", "config"), filepath.Join(home, ".gitconfig"))
	for _, name := range []string{"GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"} {
		if file := environ(name); filepath.IsAbs(file) && file != os.DevNull {
			files = append(files, file)
		}
	}
	return files
}
