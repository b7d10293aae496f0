package overlay

import (
	"strings"

	"golang.org/x/sys/unix"
)

// trail holds the directories open that a walk through a tree came through last, each of them in the one
// before. What lies near is opened from there, so that a walk does not get slower the deeper it is.
//
// A directory that is held stays reachable when someone moves it, be it out of the tree. So a trail is
// for trees that are ours alone, and for looking at others: whatever changes the workspace resolves each
// path from its root.
type trail struct {
	dirs []heldDir
	// inUse is above zero while somebody works with a directory of the trail, which must not be closed then.
	inUse int
}

type heldDir struct {
	path string
	fd   int
}

// trailMax is how many directories a trail holds open. The walk that comes back from further down opens
// half as many on its way, so that it is slowed by no more than a small factor.
const trailMax = 16

// trailing returns a view of the tree that keeps a trail, for one goroutine. It is released, not closed.
func (t *tree) trailing() *tree {
	return &tree{fd: t.fd, path: t.path, hook: t.hook, trail: &trail{}}
}

// release closes what the trail holds.
func (t *tree) release() {
	if t != nil && t.trail != nil {
		t.trail.shorten(0)
	}
}

func (tr *trail) shorten(n int) {
	for _, d := range tr.dirs[n:] {
		unix.Close(d.fd)
	}
	tr.dirs = tr.dirs[:n]
}

// from returns the open directory that is nearest to path, and the way from there.
func (t *tree) from(path string) (fd int, rest string) {
	if t.trail == nil {
		return t.fd, path
	}
	dirs := t.trail.dirs
	for i := len(dirs) - 1; i >= 0; i-- {
		if path == dirs[i].path {
			return dirs[i].fd, ""
		}
		if len(path) > len(dirs[i].path) && path[len(dirs[i].path)] == '/' && strings.HasPrefix(path, dirs[i].path) {
			return dirs[i].fd, path[len(dirs[i].path)+1:]
		}
		if t.trail.inUse == 0 {
			t.trail.shorten(i)
		}
	}
	return t.fd, path
}

// enter opens the directory at path and leaves it on the trail.
func (t *tree) enter(path string) (int, error) {
	_, rest := t.from(path)
	if rest == "" {
		return t.trail.dirs[len(t.trail.dirs)-1].fd, nil
	}
	for at := skipNames(path, rest); ; {
		fd, err := t.open(path[:at], unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return -1, err
		}
		if len(t.trail.dirs) == trailMax {
			unix.Close(t.trail.dirs[0].fd)
			t.trail.dirs = append(t.trail.dirs[:0], t.trail.dirs[1:]...)
		}
		t.trail.dirs = append(t.trail.dirs, heldDir{path[:at], fd})
		if at == len(path) {
			return fd, nil
		}
		at++
		if next := strings.IndexByte(path[at:], '/'); next >= 0 {
			at += next
		} else {
			at = len(path)
		}
	}
}

// skipNames returns the length of the first beginning of path to open, so that the last directories on
// the way, and not more, get onto the trail. rest is the end of path that is to be gone.
func skipNames(path, rest string) int {
	at := len(path)
	for range trailMax / 2 {
		slash := strings.LastIndexByte(path[:at], '/')
		if slash < len(path)-len(rest) {
			break
		}
		at = slash
	}
	return at
}
