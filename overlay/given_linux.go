package overlay

import (
	"slices"

	"golang.org/x/sys/unix"
)

// given knows which attributes the kernel gives a file of its own accord: where a security module labels files, each has
// a label, nobody's doing, which can't be taken off. Without that module the same attribute is whatever somebody wrote: a
// kernel that has SELinux, and no policy for it, leaves it to the file's owner.
type given struct {
	in    *tree // a directory of ours, that no run has seen
	known bool
	names []string
}

// leave takes what the kernel gave off the list of what must not land.
func (g *given) leave(m *marks) error {
	if !slices.ContainsFunc(m.strip, ofSecurity) {
		return nil
	}
	if !g.known {
		names, err := g.look()
		if err != nil {
			return g.in.fail("look for labels in", "", err)
		}
		g.known, g.names = true, names
	}
	m.strip = withoutGiven(m.strip, g.names)
	return nil
}

// look tries: what a file has that we made, wrote and closed is the kernel's.
func (g *given) look() ([]string, error) {
	fd, err := unnamed(g.in)
	if err != nil {
		return nil, err
	}
	kept, err := unix.Open(procName(fd), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(kept)
		_, err = unix.Write(fd, []byte{0})
	}
	unix.Close(fd) // IMA, which measures, does so once nobody can write
	if err != nil {
		return nil, err
	}
	return xattrNames(procName(kept), unix.Listxattr)
}

// withoutGiven is strip without the security modules' attributes that are among names. A file's capabilities are no label.
func withoutGiven(strip, names []string) []string {
	return slices.DeleteFunc(strip, func(attr string) bool {
		return attr != capability && ofSecurity(attr) && slices.Contains(names, attr)
	})
}
