package sandbox

import (
	"os"
	"path"
	"slices"
	"strings"

	"airlock/internal/mountinfo"
)

// withoutSockets is the spec with a mask on each listening or bound Unix socket that a bind of it would show. To read a
// directory is one thing, to talk to the agent that listens in it another: connect(2) asks only for the right to write to the
// socket's inode, and a read-only mount doesn't take that away. (An overlay does, since the inode that it shows is not
// the one that the socket is bound to.)
//
// Sockets are found as the kernel lists them, those of the server's network namespace, by every path that they have
// on the host, aliases by bind mounts included. A bind whose Source is a socket itself is left: that one was named.
func withoutSockets(s Spec, read func(string) ([]byte, error)) Spec {
	binds := slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Kind == MountBind })
	if !binds {
		return s
	}
	sockets, err := read("/proc/net/unix")
	if err != nil {
		return s // no /proc, hence no namespaces to be had either
	}
	var hostMounts []hostMount
	var masks []Mount
	for _, socket := range boundSockets(string(sockets)) {
		if strings.HasPrefix(path.Clean(socket), "/proc/self/fd/") { // what begins so may lead elsewhere by ".."
			continue // a number of whoever bound it, as airlock itself does: it says nothing to anyone else
		}
		dir, _, err := FollowLinks(path.Dir(socket))
		if err != nil {
			continue // unlinked, or bound in another mount namespace
		}
		if hostMounts == nil {
			text, err := read("/proc/self/mountinfo")
			if err != nil {
				return s
			}
			hostMounts = parseMounts(string(text))
		}
		for _, place := range placesOf(path.Join(dir, path.Base(socket)), hostMounts) {
			if fi, err := os.Lstat(place); err != nil || fi.Mode()&os.ModeSocket == 0 {
				continue
			}
			masks = append(masks, s.masksAt(place)...)
		}
	}
	if len(masks) > 0 {
		s.Mounts = append(slices.Clip(s.Mounts), masks...)
	}
	return s
}

// masksAt are masks where the spec's binds show a file of the host, and nothing else covers it.
func (s Spec) masksAt(file string) []Mount {
	var masks []Mount
	for _, m := range s.Mounts {
		if m.Kind != MountBind || file == m.Source || !under(file, m.Source) {
			continue
		}
		target := m.Target + strings.TrimPrefix(file, strings.TrimSuffix(m.Source, "/"))
		covered := slices.ContainsFunc(s.Mounts, func(o Mount) bool {
			return under(target, o.Target) && o.Target != m.Target && under(o.Target, m.Target)
		})
		if !covered {
			masks = append(masks, Mount{Kind: MountMask, Target: target})
		}
	}
	return masks
}

// boundSockets gives the absolute paths in the kernel's list of Unix sockets, each once. A line is
//
//	Num RefCount Protocol Flags Type St Inode Path
//
// and has no path for an unnamed socket, and one that begins with @ for an abstract one.
func boundSockets(list string) []string {
	var paths []string
	for line := range strings.Lines(list) {
		if at := strings.IndexByte(line, '/'); at >= 0 && len(strings.Fields(line[:at])) == 7 {
			paths = append(paths, strings.TrimSuffix(line[at:], "\n"))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// hostMount is a line of mountinfo: the directory root of the filesystem on dev is seen at point.
type hostMount struct{ dev, root, point string }

func parseMounts(text string) []hostMount {
	var mounts []hostMount
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 4 {
			mounts = append(mounts, hostMount{f[2], mountinfo.Unescape(f[3]), mountinfo.Unescape(f[4])})
		}
	}
	return mounts
}

// placesOf gives every path at which the mounts show what is at the real path file, that one included.
func placesOf(file string, mounts []hostMount) []string {
	m, ok := mountOf(file, mounts)
	if !ok {
		return []string{file}
	}
	inside := path.Join(m.root, strings.TrimPrefix(file, m.point))
	var places []string
	for _, other := range mounts {
		if other.dev != m.dev || !under(inside, other.root) {
			continue
		}
		place := path.Join(other.point, strings.TrimPrefix(inside, other.root))
		// What is mounted deeper, or over it later, may show something else there.
		if on, _ := mountOf(place, mounts); on == other && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return places
}

// mountOf is the mount that file is on: the deepest that holds it, and of several at one place the last.
func mountOf(file string, mounts []hostMount) (found hostMount, ok bool) {
	for _, m := range mounts {
		if under(file, m.point) && len(m.point) >= len(found.point) {
			found, ok = m, true
		}
	}
	return found, ok
}
