package sandbox

import (
	"path"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSplitPath(t *testing.T) {
	for _, tt := range []struct{ path, parent, name string }{
		{"a", ".", "a"},
		{"a/", ".", "a/"},
		{"a///", ".", "a/"},
		{"/a", "/", "a"},
		{"//a//b", "//a//", "b"},
		{"../a", "../", "a"},
		{"a/b/", "a/", "b/"},
		{"...", ".", "..."},
		{"", "", ""},
		{"/", "", ""},
		{"//", "", ""},
		{".", "", ""},
		{"..", "", ""},
		{"a/..", "", ""},
		{"a/./", "", ""},
	} {
		parent, name, ok := splitPath(tt.path)
		if parent != tt.parent || name != tt.name || ok != (tt.name != "") {
			t.Errorf("%q: %q, %q, %v, want %q, %q", tt.path, parent, name, ok, tt.parent, tt.name)
		}
	}
}

// Both parts together name what the path named, and the name is one.
func FuzzSplitPath(f *testing.F) {
	for _, seed := range []string{"a/b/", "/", "..", "//a//b//", "a\x00b", "./../x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		parent, name, ok := splitPath(p)
		bare := strings.TrimSuffix(name, "/")
		switch {
		case !ok:
			if last := path.Base(strings.TrimRight(p, "/")); p != "" && strings.Trim(p, "/") != "" && last != "." && last != ".." {
				t.Errorf("%q ends with a name, %q", p, last)
			}
		case bare == "" || bare == "." || bare == ".." || strings.Contains(bare, "/"):
			t.Errorf("%q: the name is %q", p, name)
		case parent == "" || (parent[0] == '/') != (p[0] == '/'):
			t.Errorf("%q: the parent is %q", p, parent)
		case strings.HasSuffix(p, "/") != strings.HasSuffix(name, "/"):
			t.Errorf("%q: the name is %q", p, name)
		case parent != "." && parent+bare+strings.Repeat("/", len(p)-len(parent)-len(bare)) != p:
			t.Errorf("%q is not %q and %q", p, parent, name)
		}
	})
}

func TestRenameCallOf(t *testing.T) {
	const high = 7 << 32 // which the kernel doesn't look at
	args := [6]uint64{high | 3, 0x1000, high | 0xffffff9c, 0x2000, high | 2, 9}
	for name, want := range map[string]renameCall{
		"rename":    {pathArgument{unix.AT_FDCWD, high | 3}, pathArgument{unix.AT_FDCWD, 0x1000}, 0, false},
		"renameat":  {pathArgument{3, 0x1000}, pathArgument{unix.AT_FDCWD, 0x2000}, 0, false},
		"renameat2": {pathArgument{3, 0x1000}, pathArgument{unix.AT_FDCWD, 0x2000}, 2, false},
		"link":      {pathArgument{unix.AT_FDCWD, high | 3}, pathArgument{unix.AT_FDCWD, 0x1000}, 0, true},
		"linkat":    {pathArgument{3, 0x1000}, pathArgument{unix.AT_FDCWD, 0x2000}, 2, true},
	} {
		if got, ok := renameCallOf(name, args); !ok || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, ok, want)
		}
	}
	if _, ok := renameCallOf("landlock_restrict_self", args); ok {
		t.Error("landlock_restrict_self is taken for a rename")
	}
}
