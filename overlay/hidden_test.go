package overlay

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestHidden(t *testing.T) {
	for _, tt := range []struct {
		patterns string // separated by commas
		hidden   string // paths, separated by spaces; a slash at the end marks a directory
		seen     string
	}{
		{".env", ".env a/.env a/.env/x", ".ENV x.env .env.x"},
		{"*.key,!public.key", "x.key a/x.key", "public.key a/public.key"},
		{"!public.key,*.key", "public.key", "public"},
		{"secrets/,!secrets/public", "secrets/ secrets/public secrets/a/b", "secrets"},
		{"secrets/*,!secrets/public", "secrets/x secrets/x/y", "secrets/ secrets/public secrets/public/x"},
		{"secrets/**,!secrets/public", "secrets/x secrets/public/x", "secrets/ secrets/public"},
		{"/*,!/src", "a .env b/c", "src src/x"},
		{`\!x,\#y`, "!x #y", "x y"},
		{"a ,b\\ ", "a b_", "b a_"},
		{"[[:digit:]]x,[![:alpha:]]y", "1x 1y", "ax ay"},
		{"a/**/b", "a/b a/x/b a/x/y/b/c", "b a/ a/x/"},
	} {
		h, err := NewHidden(strings.Split(tt.patterns, ","))
		if err != nil {
			t.Errorf("%s: %v", tt.patterns, err)
			continue
		}
		for want, list := range map[bool]string{true: tt.hidden, false: tt.seen} {
			for p := range strings.FieldsSeq(list) {
				name, isDir := strings.CutSuffix(strings.ReplaceAll(p, "_", " "), "/")
				if got := h.Hides(name, isDir); got != want {
					t.Errorf("%q hides %q: %v", tt.patterns, p, got)
				}
			}
		}
	}
	for pattern, want := range map[string]string{
		"#x":         "comment",
		"!":          "is empty",
		"  ":         "is empty",
		"a/../b":     `holds the name ".."`,
		"[a":         "not closed",
		"[[:alp:]]":  "name of a class",
		"!!x":        "leading !",
		"[[:alpha:]": "not closed",
	} {
		if _, err := NewHidden([]string{"fine", pattern}); err == nil || !strings.HasPrefix(err.Error(), "[1]: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
	if (Hidden{}).Hides("x", false) {
		t.Error("nothing hides x")
	}
}

// randomGlobs makes lists of patterns over a small alphabet, so that many match.
func randomGlobs(r *rand.Rand) []string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	globs := make([]string, 1+r.IntN(4))
	for i := range globs {
		names := make([]string, 1+r.IntN(3))
		for j := range names {
			names[j] = pick("a", "b", "c", "a", "b", "*", "a*", "?", "[ab]", "**", "[!a]", `\a`, "[[:alpha:]]")
		}
		globs[i] = pick("", "", "", "!") + pick("", "", "/") + strings.Join(names, "/") + pick("", "", "", "/")
	}
	return globs
}

// treeOfABC makes a tree in which every directory down to a depth has the names a to c, files and
// directories by turns, and returns the paths.
func treeOfABC(t *testing.T, root string) map[string]bool {
	t.Helper()
	paths := map[string]bool{} // true for a directory
	var fill func(dir string, depth int)
	fill = func(dir string, depth int) {
		for i, name := range []string{"a", "b", "c", "ab"} {
			path := joinPath(dir, name)
			paths[path] = depth > 0 && (i+depth)%3 != 0
			var err error
			if paths[path] {
				err = os.Mkdir(filepath.Join(root, path), 0o755)
			} else {
				err = os.WriteFile(filepath.Join(root, path), nil, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			if paths[path] {
				fill(path, depth-1)
			}
		}
	}
	fill("", 4)
	return paths
}

// TestHiddenAsGit asks git itself what patterns mean.
func TestHiddenAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		missing(t, "git", err)
	}
	root := t.TempDir()
	paths := treeOfABC(t, root)
	git := func(stdin string, args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = root, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if ee, ok := err.(*exec.ExitError); err != nil && (!ok || ee.ExitCode() > 1) {
			t.Fatalf("git %v: %v\n%s", args, err, errs.String())
		}
		return string(out)
	}
	git("", "init", "-q")
	var all strings.Builder
	for p := range paths {
		fmt.Fprintf(&all, "%s\x00", p)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		globs := randomGlobs(r)
		if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte(strings.Join(globs, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		h, err := NewHidden(globs)
		if err != nil {
			t.Fatalf("%q: %v", globs, err)
		}
		ignored := map[string]bool{}
		for p := range strings.SplitSeq(git(all.String(), "check-ignore", "-z", "--stdin", "--no-index"), "\x00") {
			ignored[p] = true
		}
		for p, isDir := range paths {
			if h.Hides(p, isDir) != ignored[p] {
				t.Fatalf("%q: %q (directory: %v): git says %v", globs, p, isDir, ignored[p])
			}
		}
	}
}
