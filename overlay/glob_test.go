package overlay

import (
	"path"
	"strings"
	"testing"
)

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		match   string // paths, separated by spaces; a slash at the end marks a directory
		not     string
	}{
		{"a", "a a/ b/a a/b b/a/c", "b ab b/ab"},
		{"*.txt", "x.txt .txt d/x.txt x.txt/y", "x.txtx txt"},
		{"/a", "a a/b", "b/a"},
		{"a/b", "a/b a/b/c", "x/a/b b a/c/b"},
		{"a/*", "a/b a/b/c", "a b/a"},
		{"a/**", "a/b a/b/c", "a a/ x/a/b"},
		{"**/a", "a b/a c/b/a b/a/x", "ab b/ab"},
		{"**/a/**", "a/x b/a/x a/b/c", "a a/ b/a x"},
		{"a/**/b", "a/b a/x/b a/x/y/b a/x/b/c", "a b a/x b/a/b"},
		{"**/a/**/b/c", "a/b/c a/b/b/c x/a/a/y/b/c a/b/d/b/c", "a/b b/c a/c/b"},
		{"**", "a a/b", ""},
		{"d/", "d/ d/x x/d/ x/d/y", "d x/d"},
		{"/d/", "d/ d/x", "d x/d/"},
		{"a?c", "abc aéc a.c", "ac abbc a/c"},
		{"[a-c]x", "ax bx", "dx x"},
		{"[!a-c]x", "dx éx", "ax x"},
		{"[]a]x", "]x ax", "bx"},
		{`\*x`, "*x", "ax x"},
		{`[\]a]`, "] a", "b"},
		{"a*b*c", "abc aXbYc abbcc a/abc", "ab acb"},
		{"\xff*", "\xff \xffa", "\xfe a"},
		{"?", "\xff a é", "ab"},
		{"A", "A", "a"},
	} {
		g, err := compileGlob(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		for want, list := range map[bool]string{true: tt.match, false: tt.not} {
			for _, p := range strings.Fields(list) {
				name, isDir := strings.CutSuffix(p, "/")
				if got := g.match(name, isDir); got != want {
					t.Errorf("%q matches %q: %v", tt.pattern, p, got)
				}
			}
		}
	}
	for _, bad := range []string{"", "/", "!a", "a//b", "a/../b", "./a", "[a", "[", `a\`, "[b-a]", "a[!", "*.{key,pem}"} {
		if _, err := compileGlob(bad); err == nil || !strings.Contains(err.Error(), "is not a glob") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Braces that are no alternatives are parts of a name.
func TestGlobBraces(t *testing.T) {
	for _, pattern := range []string{"{a}", `\{a,b}`, "a,b}", "{a", "${name}.txt"} {
		if _, err := compileGlob(pattern); err != nil {
			t.Error(err)
		}
	}
}

func TestGlobFoldCase(t *testing.T) {
	g, err := compileGlob("**/.Vscode/[s-t]*")
	if err != nil {
		t.Fatal(err)
	}
	g.foldCase = true
	for _, p := range []string{".vscode/tasks", "x/.VSCODE/Settings", ".v\u017fcode/tasks"} {
		if !g.match(p, false) {
			t.Errorf("%q does not match", p)
		}
	}
	if g.match(".vscode/launch", false) {
		t.Error("launch matches")
	}
}

// FuzzGlob: no pattern panics, hangs or matches a name that path.Match says it does not.
func FuzzGlob(f *testing.F) {
	for _, p := range []string{"a*b", "**/a/**", "[a-z]?", `\[`, "a/**/b/", "*?*?*", "[^\xff]"} {
		f.Add(p, "a/b/c")
		f.Add(p, "abb")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := compileGlob(pattern)
		if err != nil {
			return
		}
		got := g.match(name, false)
		g.foldCase = true
		if got && !g.match(name, false) && !strings.Contains(pattern, "[") {
			t.Errorf("%q matches %q, but not without regard to case", pattern, name)
		}
		// Where a pattern is one name without classes, path.Match means the same.
		if strings.ContainsAny(pattern, "/[\\") || strings.Contains(pattern, anyNames) || strings.Contains(name, "/") || name == "" {
			return
		}
		if want, err := path.Match(pattern, name); err == nil && want != got {
			t.Errorf("%q matches %q: %v, path.Match says %v", pattern, name, got, want)
		}
	})
}
