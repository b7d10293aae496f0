package overlay

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
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
		foreign := rootRights() && w.id.uid != 0
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

// Refuse tells that the kernel did not take the directory at this absolute path, the workspace or something
// that is mounted in it, as the lower layer of an overlay, or the filesystem of the layer as an upper one: it
// does not say which. It reports whether the next transaction will go about it in another way, as it does from
// then on: with its layer in another place, and at last with a private copy.
func (w *Workspace) Refuse(lower string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused[lower] {
		return false
	}
	if lower == w.root.path && w.openAway() {
		return true
	}
	if w.refused == nil {
		w.refused = map[string]bool{}
	}
	w.refused[lower] = true
	return true
}

func (w *Workspace) isRefused(lower string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused[lower]
}
