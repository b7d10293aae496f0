package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"airlock/sandbox"
)

// workspaceRules judges which directories may be workspaces.
type workspaceRules struct {
	places
	configFile string // the user file in force
	logFile    string // "" if there is none
}

// open returns the real path of the directory dir, relative to the working directory, if it may be a
// workspace. Runs write there, so it is not: the root, a home directory or what holds one, a directory
// of the system, or anything that holds or lies in airlock's own directories. The last would let a run
// write the configuration that the next run is judged by.
func (r workspaceRules) open(dir string) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		return "", &fault{
			Where: "workspace", Key: tomlText(dir), Msg: fmt.Sprintf(format, args...),
			Hint: "name the directory of one project with --workspace DIR",
		}
	}
	if dir == "" {
		return bad("no directory is named")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return bad("%v", err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return bad("there is no such directory")
	}
	if err != nil {
		return bad("%v", cause(err))
	}
	info, err := os.Stat(real)
	if err != nil {
		return bad("%v", cause(err))
	}
	if !info.IsDir() {
		return bad("is not a directory")
	}
	if dir, err := os.Open(real); err != nil {
		return bad("you may not read it: %v", cause(err))
	} else {
		dir.Close()
	}
	if filepath.Dir(real) == real {
		return bad("the root of the filesystem can't be a workspace")
	}
	homes := r.homes
	// Who owns the workspace is the one as whom root's runs are executed.
	uid, _ := ownerOf(info)
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil && filepath.IsAbs(u.HomeDir) {
		homes = append(slices.Clone(homes), filepath.Clean(u.HomeDir))
	}
	for _, home := range homes {
		if home = realPath(home); home != "/" && (liesIn(home, real) || sameFile(home, info)) {
			if home == real || sameFile(home, info) {
				return bad("a home directory can't be a workspace")
			}
			return bad("holds a home directory, %s", home)
		}
	}
	for _, own := range []struct{ what, dir string }{
		{"configuration", r.config},
		{"state", r.state},
		{"cache", r.cache},
	} {
		if reachedThrough(own.dir, real) {
			return bad("holds airlock's own %s, %s", own.what, own.dir)
		} else if liesIn(real, realPath(own.dir)) {
			return bad("lies in airlock's own %s, %s", own.what, own.dir)
		}
	}
	if r.configFile != "" && reachedThrough(r.configFile, real) {
		return bad("holds the configuration in force, %s, which runs could then change", r.configFile)
	}
	if r.logFile != "" && reachedThrough(r.logFile, real) {
		return bad("holds the log file, %s, which runs could then change, or make a link to another file", r.logFile)
	}
	if system := r.systemDirectory(real); system != "" {
		return bad("belongs to the system (%s)", system)
	}
	return real, nil
}

// systemDirectories are refused with everything in them; what is below a directory in its exceptions is
// somebody's own again. An exception itself is refused too.
var systemDirectories = []struct {
	dir    string
	except []string
}{
	{dir: "/usr", except: []string{"/usr/src", "/usr/local/src"}},
	{dir: "/bin"},
	{dir: "/sbin"},
	{dir: "/lib"},
	{dir: "/lib32"},
	{dir: "/lib64"},
	{dir: "/libx32"},
	{dir: "/boot"},
	{dir: "/etc"},
	{dir: "/proc"},
	{dir: "/sys"},
	{dir: "/lost+found"},
	{dir: "/opt"},
	{dir: "/nix"},
	{dir: "/gnu"},
	{dir: "/snap"},
	{dir: "/dev", except: []string{"/dev/shm"}},
	{dir: "/run", except: []string{"/run/user/*"}},
	{dir: "/var", except: []string{"/var/tmp", "/var/www", "/var/folders"}},
	{dir: "/System"},
	{dir: "/Library"},
	{dir: "/Applications"},
	{dir: "/private", except: []string{"/private/tmp", "/private/var/tmp", "/private/var/folders"}},
}

// sharedDirectories hold the directories of many; only what is in them can be a workspace.
var sharedDirectories = []string{"/tmp", "/home", "/root", "/srv", "/mnt", "/media", "/Users", "/Volumes"}

// systemDirectory returns the directory of the system that makes real, a real path, none for a
// workspace; "" if there is none.
func (r workspaceRules) systemDirectory(real string) string {
	for _, dir := range sharedDirectories {
		if real == realPath(dir) {
			return dir
		}
	}
	for _, system := range systemDirectories {
		if dir := realPath(system.dir); liesIn(real, dir) && !r.isOwn(real, system.except) {
			return system.dir
		}
	}
	return ""
}

// isOwn reports whether real is below one of the exceptions, or below a home directory that lies in a
// directory of the system, as those of service accounts do (/var/lib/jenkins). Homes that are nobody's
// in particular ("/", /bin, /dev) are no exception.
func (r workspaceRules) isOwn(real string, except []string) bool {
	for _, pattern := range except {
		for dir := real; dir != filepath.Dir(dir); {
			dir = filepath.Dir(dir)
			if ok, _ := filepath.Match(pattern, dir); ok {
				return true
			}
		}
	}
	return slices.ContainsFunc(r.homes, func(home string) bool {
		home = realPath(home)
		return strings.Count(home, "/") >= 3 && home != real && liesIn(real, home)
	})
}

// liesIn reports whether path is dir or lies in it. Both are absolute and clean.
func liesIn(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// reachedThrough reports whether path lies in dir, or is reached through a link that does: whoever writes
// in dir decides then what is at path. Both are absolute, and dir is a real path.
func reachedThrough(path, dir string) bool {
	for hop := path; ; {
		if liesIn(realPath(filepath.Dir(hop)), dir) || liesIn(realPath(hop), dir) {
			return true
		}
		parent := filepath.Dir(hop)
		if _, links, err := sandbox.FollowLinks(hop); err == nil {
			return slices.ContainsFunc(links, func(l sandbox.Mount) bool { return liesIn(l.Target, dir) })
		} else if parent == hop {
			return false
		}
		hop = parent // what is missing has no links
	}
}

// sameFile tells one directory under two names, as a bind mount gives.
func sameFile(path string, info fs.FileInfo) bool {
	other, err := os.Stat(path)
	return err == nil && os.SameFile(other, info)
}

// cause takes the operation and the path off an error of package os, for a message that names both.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
