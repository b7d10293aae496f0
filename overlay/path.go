package overlay

import (
	"fmt"
	"strings"
)

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

// checkPath makes sure that a path that was read is one within a workspace. openat2 would refuse it
// otherwise; this names the cause.
func checkPath(path string) error {
	for name := range strings.SplitSeq(path, "/") {
		if name == ".." || name == "." || name == "" && path != "" || strings.ContainsRune(name, 0) {
			return fmt.Errorf("%s is no path within a workspace", Quote(path))
		}
	}
	return nil
}
