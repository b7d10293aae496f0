package overlay

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// maxHeld is how many mounts may hold paths of a workspace. Each takes some microseconds at the start of a
// run, and the kernel lets a mount namespace have 100,000.
const maxHeld = 1000

// holder finds what runs of a workspace of mode "direct" are kept from.
type holder struct {
	mu     sync.Mutex
	held   *heldIndex
	hidden *hiddenIndex // nil if nothing is hidden
}

// Hold says what has to be mounted for a run that writes to the workspace itself, as the workspace is now:
// the workspace, over it what exists of the protected paths, read-only, and in place of what is hidden
// something empty. Each directory that one of them lies in is a mount, too: a mount point can't be renamed
// or removed. The error names the way out where that takes too many mounts.
func (w *Workspace) Hold(ctx context.Context) (Held, error) {
	if err := w.unmoved(); err != nil {
		return Held{}, err
	}
	// After the landing that goes on now, if any.
	lock, err := w.lockShared(ctx)
	if err != nil {
		return Held{}, err
	}
	defer lock.Unlock()
	h := &w.holder
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.held = &heldIndex{filter: w.filter, host: w.root, gitUser: w.gitUser, trusted: w.trusted}
		if len(w.filter.hidden.rules) > 0 {
			h.hidden = newHiddenIndex(w.filter.hidden, w.root, w.trusted)
		}
	}
	found, err := h.held.look(ctx, passed())
	if err != nil {
		return Held{}, fmt.Errorf("look for what is protected: %w", err)
	}
	readOnly, masked := slices.Clone(found.readOnly), slices.Clone(found.ours)
	mounts, err := w.visibleMounts()
	if err != nil {
		return Held{}, fmt.Errorf("look for mounts: %w", err)
	}
	for _, m := range mounts {
		// Nothing is looked for in there.
		if i, err := statAt(w.root.fd, m.path); h.hidden != nil && err == nil && i.kind == directory {
			masked = append(masked, m.path)
		} else {
			readOnly = append(readOnly, m.path)
		}
	}
	hidden, err := h.paths(w.root)
	if err != nil {
		return Held{}, fmt.Errorf("look for what is hidden: %w", err)
	}
	masked = append(masked, hidden...)
	for _, link := range found.links {
		if target, ok := w.targetInside(link); ok && !isDotGit(baseName(link)) {
			readOnly = append(readOnly, target)
		}
	}
	held, err := w.layersFor(outermostOf(readOnly), outermostOf(masked))
	held.Links = found.links
	return held, err
}

// paths are those that are hidden and exist.
func (h *holder) paths(root *tree) ([]string, error) {
	if h.hidden == nil {
		return nil, nil
	}
	dirs, err := h.hidden.look(passed())
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, d := range dirs {
		if d.all {
			paths = append(paths, d.path)
		}
		for _, name := range d.hidden {
			path := joinPath(d.path, name)
			if i, err := statAt(root.fd, path); err != nil || i.kind != absent {
				paths = append(paths, path)
			}
		}
	}
	return paths, nil
}

// targetInside is where a link of the workspace leads to, if that exists in the workspace and is not all of it.
func (w *Workspace) targetInside(link string) (string, bool) {
	real, err := filepath.EvalSymlinks(filepath.Join(w.root.path, link))
	if err != nil {
		return "", false
	}
	rel, err := filepath.Rel(w.root.path, real)
	return rel, err == nil && filepath.IsLocal(rel) && rel != "."
}

// layersFor makes the mounts for paths of which none lies in another of its list.
func (w *Workspace) layersFor(readOnly, masked []string) (Held, error) {
	held := Held{Layers: []Layer{{Lower: w.root.path, Writable: true}}}
	if link, _ := w.gitLink(); link != nil { // git says well enough that there is none
		held.Layers = append(held.Layers, Layer{Lower: link.dir, Via: link.via, ReadOnly: true})
	}
	var masks []Layer
	pinned := map[string]bool{}
	pin := func(path string) {
		for path = parentPath(path); path != "" && !pinned[path] && !coveredBy(path, readOnly) && !coveredBy(path, masked); path = parentPath(path) {
			pinned[path] = true
		}
	}
	for _, path := range masked {
		i, err := statAt(w.root.fd, path)
		if err != nil && !is(err, unix.EACCES) {
			return Held{}, err
		}
		target := path
		if err == nil && i.kind == symlink {
			// Nothing can be mounted over a link; what it leads to is hidden in its place.
			inside, ok := w.targetInside(path)
			if !ok {
				if real, err := filepath.EvalSymlinks(filepath.Join(w.root.path, path)); err == nil && real == w.root.path {
					return Held{}, fmt.Errorf("%s is hidden (sandbox.hide) and a link to the whole workspace, which nothing hides in workspace.mode \"direct\"; remove it", Quote(path))
				}
				continue // to nothing that a run sees by it
			}
			target = inside
		}
		pin(target)
		masks = append(masks, Layer{Lower: filepath.Join(w.root.path, target), Masked: true})
	}
	for _, path := range readOnly {
		pin(path)
		held.Protected = append(held.Protected, path)
	}
	if n := len(pinned) + len(readOnly) + len(masks); n > maxHeld {
		examples := slices.Concat(readOnly, masked)
		for i := range examples[:min(3, len(examples))] {
			examples[i] = Quote(examples[i])
		}
		return Held{}, fmt.Errorf("%d mounts would be needed to hold what is protected (workspace.protect) or hidden (sandbox.hide) in workspace.mode \"direct\", such as %s; at most %d are made: name whole directories, or take workspace.mode = \"overlay\", which needs none",
			n, strings.Join(examples[:min(3, len(examples))], ", "), maxHeld)
	}
	for path := range pinned {
		held.Layers = append(held.Layers, Layer{Lower: filepath.Join(w.root.path, path), Writable: true})
	}
	for _, path := range readOnly {
		held.Layers = append(held.Layers, Layer{Lower: filepath.Join(w.root.path, path), ReadOnly: true})
	}
	held.Layers = append(held.Layers, masks...)
	return held, nil
}

// outermostOf sorts paths and leaves out those that lie in others, or are there twice.
func outermostOf(paths []string) []string {
	slices.Sort(paths)
	paths = slices.Compact(paths)
	known := map[string]bool{}
	for _, p := range paths {
		known[p] = true
	}
	return slices.DeleteFunc(paths, func(p string) bool {
		for p != "" {
			if p = parentPath(p); known[p] {
				return true
			}
		}
		return false
	})
}

// coveredBy reports whether a path is one of those in a sorted list, or lies in one.
func coveredBy(path string, sorted []string) bool {
	for {
		if _, found := slices.BinarySearch(sorted, path); found {
			return true
		}
		if path == "" {
			return false
		}
		path = parentPath(path)
	}
}

// Free is how many bytes the workspace's filesystem has left for its owner.
func (w *Workspace) Free() (int64, error) { return freeAt(w.root) }

var errDirect = errors.New("overlay: runs write to the workspace itself, without a transaction (workspace.mode)")
