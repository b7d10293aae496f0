package sandbox

import (
	"os"
	"path"
	"slices"
	"strings"
)

// System is what every run sees of the host besides the workspace, read-only. Make one with [HostSystem].
type System struct {
	// Mounts show it. They go before the workspace's in [Spec.Mounts], so that a workspace that lies
	// inside of it is on top.
	Mounts []Mount
	// Path is the PATH of a run: the directories of the host's that a run sees, then the usual ones.
	Path []string
	// Env holds the variables, as KEY=VALUE, with which toolchains find their own files, where these do
	// not lie in the run's home directory.
	Env []string
	// Account is who the run is.
	Account Account

	untrusted []string // see HostSystem
}

// systemDirs hold programs and libraries. Those that are links on the host are made again as links.
var systemDirs = []string{
	"/usr", "/usr/local", "/opt", "/nix", "/gnu/store",
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
	"/var/lib/texmf", "/var/cache/fontconfig",
}

// standardPath ends the PATH of every run.
var standardPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// HostSystem looks at the host and gives what a run of uid and gid sees of it: programs and libraries, an
// allowlist of /etc with the files that name users and hosts replaced by the run's own, and the
// toolchains that env's PATH and the home directory lead to. env is the server's environment; only PATH
// and HOME are looked at. Things of the host that don't exist or can't be read are left out.
//
// untrusted are real directories that runs write to: workspaces. Nothing is shown because of what is in one, where a link
// that an earlier run has left could lead to anything of the user's.
func HostSystem(env []string, uid, gid int, untrusted ...string) (System, error) {
	s := System{Account: lookupAccount(env, uid, gid), untrusted: untrusted}
	for _, dir := range systemDirs {
		s.show(dir)
	}
	if text, err := os.Readlink("/var/run"); err == nil {
		s.Mounts = append(s.Mounts, Mount{Kind: MountSymlink, Source: text, Target: "/var/run"}) // to the run's own
	}
	s.showEtc()
	s.Mounts = append(s.Mounts, s.Account.files()...)
	s.showToolchains(env)

	hostPath := strings.Split(getenv(env, "PATH"), ":")
	for _, dir := range append(hostPath, standardPath...) {
		if !path.IsAbs(dir) || slices.Contains(s.Path, path.Clean(dir)) {
			continue
		}
		// A directory that is shown may be known to PATH by a link that is not.
		if real, _, err := FollowLinks(dir); err == nil && s.covered(real) && s.show(dir) {
			s.Path = append(s.Path, path.Clean(dir))
		}
	}
	return s, nil
}

// show adds what shows name and what leads to it, unless that is shown already. It reports whether name
// can be seen now.
func (s *System) show(name string) bool {
	if s.Visible(name) {
		return true
	}
	mounts, err := Show(name)
	if err != nil {
		return false
	}
	real := mounts[len(mounts)-1].Target
	if !s.Account.reaches(real) || slices.ContainsFunc(mounts, s.inUntrusted) {
		return false
	}
	if s.covered(real) {
		mounts = mounts[:len(mounts)-1]
	}
	for _, m := range mounts {
		m.Optional = m.Kind == MountBind
		if !slices.ContainsFunc(s.Mounts, func(o Mount) bool { return o.Kind == m.Kind && o.Target == m.Target }) {
			s.Mounts = append(s.Mounts, m)
		}
	}
	return true
}

// inUntrusted reports whether a link is, or what is shown lies, where runs write.
func (s *System) inUntrusted(m Mount) bool {
	return slices.ContainsFunc(s.untrusted, func(dir string) bool { return under(m.Target, dir) })
}

// Visible reports whether a run sees, at the same path, what the host has at name, which may lead through
// links. It says nothing of the workspace.
func (s *System) Visible(name string) bool {
	real, links, err := FollowLinks(name)
	if err != nil || !s.covered(real) {
		return false
	}
	return !slices.ContainsFunc(links, func(link Mount) bool {
		made := slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Kind == MountSymlink && m.Target == link.Target })
		return !made && !s.covered(link.Target)
	})
}

// covered reports whether a real path lies in something that is shown and not hidden.
func (s *System) covered(real string) bool {
	shown := false
	for _, m := range s.Mounts {
		switch m.Kind {
		case MountBind:
			shown = shown || under(real, m.Target)
		case MountFile, MountMask:
			if under(real, m.Target) {
				return false
			}
		}
	}
	return shown
}
