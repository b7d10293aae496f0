package overlay

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A layer lies on the workspace's filesystem, so that a landing renames. Where that filesystem can't be that
// of an overlay's upper layer, as with another overlay (a container's own root), NFS, or FUSE, the layer lies
// on another one that can, and a landing copies what changed into its own directory, RUN/landing, before it
// takes the first step. That directory is on the workspace's filesystem as ever: from there on all is the same.

// awayPlaces are the directories that can hold layers then: on the filesystem of the state directory, or in
// memory.
func (w *Workspace) awayPlaces() []*scratch {
	id := filepath.Base(w.state)
	places := []*scratch{{base: &tree{path: filepath.Join(w.state, "layers")}}}
	if w.scratch.base.path == places[0].base.path {
		places = nil
	}
	return append(places, &scratch{base: &tree{path: shmPlace(id)}, own: true})
}

// shmPlace is the one in memory.
func shmPlace(id string) string {
	return filepath.Join("/dev/shm", "airlock-"+strconv.Itoa(os.Geteuid())+"-"+id)
}

// openAway goes on to the next place that can hold layers; false if there is none left. Transactions that
// go on keep theirs. The caller holds w.mu, or nobody else has w yet.
func (w *Workspace) openAway() bool {
	places := w.awayPlaces()
	for w.tried < len(places) {
		place := places[w.tried]
		w.tried++
		place.mode = w.scratch.mode
		foreign := os.Geteuid() == 0 && w.id.uid != 0
		if place.open(context.Background(), w.root, w.id, foreign, holdsLayers) == nil {
			if w.away != nil {
				w.left = append(w.left, w.away)
			}
			w.away = place
			return true
		}
	}
	return false
}

func (w *Workspace) awayNow() *scratch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.away
}

// holdsLayers tries whether a directory takes what overlayfs leaves in an upper layer: whiteouts, and
// attributes of the user class. It says nothing of what overlayfs needs beside that.
func holdsLayers(dir, _ *tree) error {
	const name = ".airlock-whiteout"
	if err := unix.Mknodat(dir.fd, name, unix.S_IFCHR, 0); err != nil {
		return dir.fail("make whiteout", name, err)
	}
	if err := unix.Unlinkat(dir.fd, name, 0); err != nil {
		return dir.fail("remove", name, err)
	}
	const attribute = "user.overlay.origin"
	if err := unix.Fsetxattr(dir.fd, attribute, nil, 0); err != nil {
		return dir.fail("set attribute of", "", err)
	}
	return dir.fail("remove attribute of", "", unix.Fremovexattr(dir.fd, attribute))
}

// copyIn copies what a step puts from a layer on another filesystem. Names of one inode stay that.
func (l *lander) copyIn(ctx context.Context, s *step) error {
	if l.copier == nil {
		l.copier = &copier{ctx: ctx, from: l.t.upper, to: l.landing}
	}
	source, err := l.t.upper.stat(s.path)
	if err != nil {
		return err
	}
	return l.copier.entry(s.path, s.name(), source)
}
