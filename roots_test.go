package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestWorkspaceFromRoots(t *testing.T) {
	for _, tt := range []struct {
		uris      []string
		want, err string
	}{
		{nil, "/cwd", ""},
		{[]string{"file:///home/u/project"}, "/home/u/project", ""},
		{[]string{"file:///home/u/project/"}, "/home/u/project", ""},
		{[]string{"file://localhost/a"}, "/a", ""},
		{[]string{"FILE:///a"}, "/a", ""},
		{[]string{"file:/a"}, "/a", ""},
		{[]string{"file:///a%20b/%C3%A9%23%3F%25"}, "/a b/é#?%", ""},
		{[]string{"file:///a+b"}, "/a+b", ""},
		{[]string{"file:///a/%2e%2e/b"}, "/b", ""},
		{[]string{"file:///a", "file:///a/"}, "/a", ""},
		{[]string{"https://example.org/x", "file:///a"}, "/a", ""},
		{[]string{"https://example.org/x"}, "", "workspace: none of the client's roots is a directory of this machine"},
		{[]string{""}, "", "workspace: none of the client's roots is a directory of this machine"},
		{[]string{"file:///a", "file:///b\n"}, "", `workspace: the client's root "file:///b\n" is not a file URI, as in "file:///home/u/project"`},
		{[]string{"file:///a", "file:///b%0Ac"}, "", `workspace: the client has 2 roots, and --workspace says none: "/a", "/b\nc"`},
		{[]string{"file://server/share"}, "", `workspace: the client's root "file://server/share" is on another machine`},
		{[]string{"file://u@localhost/a"}, "", `workspace: the client's root "file://u@localhost/a" is on another machine`},
		{[]string{"file:///a#b"}, "", `workspace: the client's root "file:///a#b" has a "?" or "#" that is not percent-encoded`},
		{[]string{"file:///a?"}, "", `workspace: the client's root "file:///a?" has a "?" or "#" that is not percent-encoded`},
		{[]string{"file:///a#"}, "", `workspace: the client's root "file:///a#" has a "?" or "#" that is not percent-encoded`},
		{[]string{"file:///a%00b"}, "", `workspace: the client's root "file:///a%00b" holds a NUL byte`},
		{[]string{"file:///a%zz"}, "", `workspace: the client's root "file:///a%zz" is not a file URI, as in "file:///home/u/project"`},
		{[]string{"file:a"}, "", `workspace: the client's root "file:a" is not a file URI, as in "file:///home/u/project"`},
		{[]string{"file://"}, "", `workspace: the client's root "file://" is not a file URI, as in "file:///home/u/project"`},
	} {
		got, err := workspaceFromRoots(tt.uris, "/cwd")
		if tt.err == "" {
			if err != nil || got != tt.want {
				t.Errorf("%q: %q, %v; want %q", tt.uris, got, err, tt.want)
			}
			continue
		}
		var f *fault
		if !errors.As(err, &f) || f.Error() != tt.err || f.Hint == "" {
			t.Errorf("%q: error\n\t%v, want\n\t%s\nand a hint", tt.uris, err, tt.err)
		}
	}
}

func FuzzRootPath(f *testing.F) {
	for _, s := range []string{"file:///a%20b", "file://localhost/", "file:x", "file:////a//b/../.."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		path, err := rootPath(uri)
		if err == nil && (path == "" || path[0] != '/' || filepath.Clean(path) != path || strings.ContainsRune(path, 0)) {
			t.Errorf("%q gives %q", uri, path)
		}
	})
}
