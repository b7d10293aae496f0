package envs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"airlock/internal/untrusted"
)

// resolveShim gives the interpreter behind a pyenv shim, so that a run does not pay for the shim's
// look-up (some 50 ms of shell) and needs none of the files that it reads. Any other path is returned
// as it is.
//
// The version is the first of PYENV_VERSION, the workspace's .python-version and pyenv's own version
// file that names an installed one, as pyenv itself would choose.
func (f *finder) resolveShim(path string) (string, error) {
	root, ok := pyenvRoot(path)
	if !ok {
		return path, nil
	}
	installed, err := os.ReadDir(filepath.Join(root, "versions"))
	if err != nil {
		return "", fmt.Errorf("a shim of pyenv: %w", cause(err))
	}
	var names []string
	for _, entry := range installed {
		names = append(names, entry.Name())
	}
	for _, wanted := range f.pyenvVersions(root) {
		if wanted == "system" {
			return "", errors.New("a shim of pyenv, which is set to the system's Python")
		}
		if version := pickVersion(names, wanted); version != "" {
			return filepath.Join(root, "versions", version, "bin", "python3"), nil
		}
	}
	return "", fmt.Errorf("a shim of pyenv, and no version that is chosen is installed below %s", filepath.Join(root, "versions"))
}

// pyenvRoot tells a shim by where it is: in the directory shims beside versions. What the script says
// is not looked at.
func pyenvRoot(path string) (root string, ok bool) {
	dir := filepath.Dir(path)
	if filepath.Base(dir) != "shims" {
		return "", false
	}
	root = filepath.Dir(dir)
	info, err := os.Stat(filepath.Join(root, "versions"))
	return root, err == nil && info.IsDir()
}

// pyenvVersions lists the versions that are asked for, the strongest first.
func (f *finder) pyenvVersions(root string) []string {
	wanted := versionNames(strings.ReplaceAll(f.PyenvVersion, ":", "\n"))
	if f.Workspace != "" {
		// Absent, unreadable or odd is all the same: then it chooses nothing.
		content, _ := untrusted.ReadFile(f.Workspace, ".python-version", 4<<10)
		wanted = append(wanted, versionNames(string(content))...)
	}
	content, _ := os.ReadFile(filepath.Join(root, "version"))
	return append(wanted, versionNames(string(content))...)
}

// versionNames reads one version a line. A name becomes one element of a path, so it is taken only if
// it can be nothing else.
func versionNames(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		name := strings.TrimSpace(line)
		if name == "" || name[0] == '.' || len(name) > 64 {
			continue
		}
		if strings.Trim(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-") == "" {
			names = append(names, name)
		}
	}
	return names
}

// pickVersion returns the installed version that is wanted, or else the newest that it is the
// beginning of: "3.11" is 3.11.7.
func pickVersion(installed []string, wanted string) string {
	if slices.Contains(installed, wanted) {
		return wanted
	}
	best := ""
	for _, name := range installed {
		if strings.HasPrefix(name, wanted+".") && (best == "" || compareVersions(name, best) > 0) {
			best = name
		}
	}
	return best
}

// compareVersions compares part by part, numbers by their value.
func compareVersions(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		n, errX := strconv.Atoi(x)
		m, errY := strconv.Atoi(y)
		if errX == nil && errY == nil {
			return n - m
		}
		return strings.Compare(x, y)
	})
}
