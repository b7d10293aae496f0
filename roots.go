package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// workspaceFromRoots chooses the workspace where no --workspace was given: the client's only file
// root, or cwd, the working directory, if the client has no roots. uris are the roots as the client
// wrote them. With several the choice is the person's.
func workspaceFromRoots(uris []string, cwd string) (string, error) {
	if len(uris) == 0 {
		return cwd, nil
	}
	var dirs []string
	for _, uri := range uris {
		if !strings.HasPrefix(strings.ToLower(uri), "file:") {
			continue // a root can be anything; only files concern us
		}
		dir, err := rootPath(uri)
		if err != nil {
			return "", err
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	const hint = "name the one to work in with --workspace DIR in the client's configuration"
	switch len(dirs) {
	case 0:
		return "", &fault{Where: "workspace", Msg: "none of the client's roots is a directory of this machine", Hint: hint}
	case 1:
		return dirs[0], nil
	}
	var names []string
	for _, dir := range dirs {
		names = append(names, tomlText(dir))
	}
	return "", &fault{
		Where: "workspace",
		Msg:   fmt.Sprintf("the client has %d roots, and --workspace says none: %s", len(dirs), strings.Join(names, ", ")),
		Hint:  hint,
	}
}

// rootPath returns the path of a file URI (RFC 8089): percent-decoded, absolute and clean.
func rootPath(uri string) (string, error) {
	bad := func(why string) (string, error) {
		return "", &fault{Where: "workspace", Msg: fmt.Sprintf("the client's root %s %s", tomlText(uri), why), Hint: "name the directory with --workspace DIR"}
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil || u.Opaque != "":
		return bad(`is not a file URI, as in "file:///home/u/project"`)
	case u.User != nil || (u.Host != "" && !strings.EqualFold(u.Host, "localhost")):
		return bad("is on another machine")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(uri, "#"):
		return bad(`has a "?" or "#" that is not percent-encoded`)
	case strings.ContainsRune(u.Path, 0):
		return bad("holds a NUL byte")
	}
	path := filepath.FromSlash(u.Path)
	if filepath.Separator == '\\' { // "/C:/x" is C:\x
		path = strings.TrimPrefix(path, `\`)
	}
	if !filepath.IsAbs(path) {
		return bad(`is not a file URI, as in "file:///home/u/project"`)
	}
	return filepath.Clean(path), nil
}
