package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// maxLinks is how many symbolic links a path may lead through; the kernel has the same limit.
const maxLinks = 40

// FollowLinks resolves a path of the host. It returns the real path, and for each symbolic link on the way
// the mount that makes it again, so that inside a sandbox that shows the real path, name leads there
// as well. The links themselves are at real paths. The error is an *fs.PathError.
func FollowLinks(name string) (real string, links []Mount, err error) {
	if !path.IsAbs(name) {
		return "", nil, &fs.PathError{Op: "resolve", Path: name, Err: errors.New("not an absolute path")}
	}
	real = "/"
	rest := strings.Split(name, "/")
	for len(rest) > 0 {
		component := rest[0]
		rest = rest[1:]
		switch component {
		case "", ".":
			continue
		case "..":
			real = path.Dir(real)
			continue
		}
		next := path.Join(real, component)
		fi, err := os.Lstat(next)
		if err != nil {
			return "", nil, err
		}
		if fi.Mode()&fs.ModeSymlink == 0 {
			real = next
			continue
		}
		text, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if len(links) == maxLinks {
			return "", nil, &fs.PathError{Op: "resolve", Path: name, Err: errors.New("too many levels of symbolic links")}
		}
		links = append(links, Mount{Kind: MountSymlink, Source: text, Target: next})
		if path.IsAbs(text) {
			real = "/"
		}
		rest = append(strings.Split(text, "/"), rest...)
	}
	return real, links, nil
}

// Show returns the mounts that show a path of the host, read-only and at its own place: the file or
// directory at its real path, and the links that lead to it. The kernel's own filesystems can't be
// shown.
func Show(name string) ([]Mount, error) {
	real, links, err := FollowLinks(name)
	if err != nil {
		return nil, err
	}
	for _, own := range []string{"/proc", "/dev", "/sys"} {
		if under(real, own) {
			return nil, &fs.PathError{Op: "show", Path: name, Err: errors.New("it leads to " + own + ", which a run has its own of, or none")}
		}
	}
	if real == "/" {
		return nil, &fs.PathError{Op: "show", Path: name, Err: errors.New("it leads to the whole host")}
	}
	return append(links, Mount{Kind: MountBind, Source: real, Target: real}), nil
}
