package gitconfig

import (
	"path/filepath"
	"strings"

	"airlock/internal/untrusted"
)

// Identity is who makes commits.
type Identity struct {
	Name, Email string // "" where nothing says so
}

// maxIncludes is how deep git follows includes.
const maxIncludes = 10

// IdentityOf reads user.name and user.email from configuration files, of which the later win, and from what
// they include. home is what "~/" stands for; gitDir is the git directory that an includeIf "gitdir:" is
// judged by. Conditions of other kinds, and patterns with wildcards, are taken not to hold. Files that are
// missing, and those that [Parse] refuses, say nothing.
func IdentityOf(home, gitDir string, files ...string) Identity {
	r := identityReader{home: home, gitDir: gitDir, budget: maxFiles}
	for _, f := range files {
		r.read(f, 0)
	}
	return r.found
}

type identityReader struct {
	home, gitDir string
	budget       int // files
	found        Identity
}

func (r *identityReader) read(file string, depth int) {
	if depth > maxIncludes || r.budget == 0 {
		return
	}
	r.budget--
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return
	}
	text, err := untrusted.ReadFile(filepath.Dir(real), filepath.Base(real), MaxSize)
	if err != nil {
		return
	}
	entries, err := Parse(text)
	if err != nil {
		return
	}
	for _, e := range entries {
		switch {
		case e.Section == "user" && e.Subsection == "" && e.Key == "name":
			r.found.Name = e.Value
		case e.Section == "user" && e.Subsection == "" && e.Key == "email":
			r.found.Email = e.Value
		case e.Key == "path" && e.Value != "" && (e.Section == "include" && e.Subsection == "" || e.Section == "includeif" && r.holds(e.Subsection, file)):
			path := expand(r.home, e.Value)
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(file), path)
			}
			r.read(path, depth+1)
		}
	}
}

// holds judges the condition of an includeIf in file.
func (r *identityReader) holds(condition, file string) bool {
	pattern, ok := strings.CutPrefix(condition, "gitdir:")
	fold := false
	if !ok {
		if pattern, ok = strings.CutPrefix(condition, "gitdir/i:"); !ok {
			return false
		}
		fold = true
	}
	if rest, ok := strings.CutPrefix(pattern, "./"); ok {
		pattern = filepath.Dir(file) + "/" + rest
	}
	if rest, ok := strings.CutPrefix(pattern, "~/"); ok {
		pattern = strings.TrimSuffix(r.home, "/") + "/" + rest // with the slash at its end, which means all below
	}
	pattern = strings.TrimSuffix(pattern, "**")
	if !filepath.IsAbs(pattern) || strings.ContainsAny(pattern, `*?[\`) {
		return false
	}
	dir := r.gitDir
	if fold {
		pattern, dir = strings.ToLower(pattern), strings.ToLower(dir)
	}
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(dir+"/", pattern)
	}
	return dir == pattern
}

// File gives the text of a configuration file that says who makes commits.
func (id Identity) File() string {
	var b strings.Builder
	for _, v := range []struct{ key, value string }{{"name", id.Name}, {"email", id.Email}} {
		if v.value == "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("[user]\n")
		}
		b.WriteString("\t" + v.key + " = \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(v.value) + "\"\n")
	}
	return b.String()
}
