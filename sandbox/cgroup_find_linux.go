package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"airlock/internal/mountinfo"
)

// hierarchy is a place where cgroups of runs may be made.
type hierarchy struct {
	version     int      // 1 or 2
	base        string   // the directory that they are made in
	controllers []string // those that were asked for and that a child of base has
}

// findHierarchies finds where cgroups with the wanted controllers may be made, each controller at most
// once: a host may have some of them in version 1 hierarchies and the rest in version 2's. What cannot
// be had is left out, and the error says why, also where something was found.
//
// It is asked anew each time (a fraction of a millisecond), so that nothing needs to be remembered when
// the server is moved to another cgroup.
func findHierarchies(wanted []string) ([]hierarchy, error) {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own := parseMemberships(string(self))
	mounts := parseCgroupMounts(string(mountinfo))
	if len(mounts) == 0 {
		return nil, errors.New("no cgroup file system is mounted")
	}

	var found []hierarchy
	var errs []error
	rest := slices.Clone(wanted)
	for _, m := range own {
		controllers := both(rest, m.controllers)
		if m.version() != 1 || len(controllers) == 0 {
			continue
		}
		dir, _, err := m.directory(mounts)
		if err == nil {
			err = writable(dir)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", strings.Join(controllers, ", "), err))
			continue
		}
		found = append(found, hierarchy{version: 1, base: dir, controllers: controllers})
		rest = slices.DeleteFunc(rest, func(c string) bool { return slices.Contains(controllers, c) })
	}
	for _, m := range own {
		if m.version() != 2 || len(rest) == 0 {
			continue
		}
		dir, top, err := m.directory(mounts)
		var h hierarchy
		if err == nil {
			h, err = findV2(top, dir, rest)
		}
		switch {
		case err == nil:
			found = append(found, h)
		case errors.Is(err, errNothingToPass) && len(errs) > 0:
			// The controllers are version 1's on this host, and what keeps us from those is said.
		default:
			errs = append(errs, fmt.Errorf("%s: %w", strings.Join(rest, ", "), err))
		}
	}
	return found, errors.Join(errs...)
}

// membership is a line of /proc/self/cgroup: in which cgroup of a hierarchy the process lives.
type membership struct {
	controllers []string // empty on version 2 and for version 1 hierarchies that have only a name
	path        string   // from the root of the hierarchy, or of the cgroup namespace
	unified     bool     // hierarchy 0, which is version 2
}

func (m membership) version() int {
	if m.unified {
		return 2
	}
	return 1
}

// parseMemberships reads /proc/self/cgroup: lines "ID:CONTROLLERS:PATH", where the path may hold colons.
func parseMemberships(text string) []membership {
	var out []membership
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		m := membership{path: f[2], unified: f[0] == "0" && f[1] == ""}
		if f[1] != "" {
			m.controllers = strings.Split(f[1], ",")
		}
		out = append(out, m)
	}
	return out
}

// directory finds the mounted directory of the membership, and the mount's own directory.
func (m membership) directory(mounts []cgroupMount) (dir, top string, err error) {
	for _, mount := range mounts {
		// A path that begins with ".." lies outside of the cgroup namespace, whatever is mounted.
		if strings.HasPrefix(m.path, "/..") {
			break
		}
		if mount.version != m.version() || len(both(m.controllers, mount.options)) != len(m.controllers) {
			continue
		}
		// The mount may show only a part of the hierarchy: in a container, that of the container.
		rel, err := filepath.Rel(mount.root, m.path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue
		}
		return filepath.Join(mount.dir, rel), mount.dir, nil
	}
	return "", "", fmt.Errorf("the cgroup of this process, %s, is not visible in any mounted cgroup file system", m.path)
}

// cgroupMount is a mounted cgroup file system.
type cgroupMount struct {
	version int
	root    string   // the cgroup that is mounted
	dir     string   // where
	options []string // of the file system; on version 1 its controllers are among them
}

// parseCgroupMounts reads the cgroup file systems in /proc/self/mountinfo.
func parseCgroupMounts(text string) []cgroupMount {
	var out []cgroupMount
	for line := range strings.Lines(text) {
		place, system, ok := strings.Cut(line, " - ")
		p, s := strings.Fields(place), strings.Fields(system)
		if !ok || len(p) < 5 || len(s) < 3 {
			continue
		}
		m := cgroupMount{root: mountinfo.Unescape(p[3]), dir: mountinfo.Unescape(p[4]), options: strings.Split(s[2], ",")}
		switch s[0] {
		case "cgroup":
			m.version = 1
		case "cgroup2":
			m.version = 2
		default:
			continue
		}
		out = append(out, m)
	}
	return out
}
