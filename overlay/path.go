package overlay

import "strings"

// Paths within a workspace are relative, joined by slashes, in the bytes that the filesystem has;
// "" is the workspace itself.

// parentPath returns the directory that path lies in.
func parentPath(path string) string {
	return path[:max(0, strings.LastIndexByte(path, '/'))]
}

// baseName returns the last name of path.
func baseName(path string) string {
	return path[strings.LastIndexByte(path, '/')+1:]
}

// joinPath returns the path of name in the directory at path.
func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}
