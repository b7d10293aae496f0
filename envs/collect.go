package envs

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"airlock/internal/clearing"
	"airlock/internal/filelock"
)

// Garbage is what [Store.Collect] removed, or would.
type Garbage struct {
	Left   int // installations that a server began which was killed
	Layers int
	Trees  int // of hard links: they are worth next to nothing
	Wheels int
	Bytes  int64 // what the files of all but the trees hold
}

// Collect removes what nothing uses any more: installations of dead servers at once, layers, trees and
// wheels that no environment and no conversation names once they are older than keep. An installation that goes
// on is about to name some, so that keep should be longer than one takes. With dryRun it only looks.
func (s *Store) Collect(ctx context.Context, keep time.Duration, dryRun bool) (Garbage, error) {
	l, err := s.lock(ctx)
	if err != nil {
		return Garbage{}, err
	}
	defer l.Unlock()
	g := collector{store: s, dryRun: dryRun}
	over := g.servers()
	used, err := s.used(over)
	if err != nil {
		return g.found, err // what can't be read may name any of them
	}
	counts := map[string]*int{"layers": &g.found.Layers, "wheels": &g.found.Wheels, "trees": &g.found.Trees}
	for _, kind := range []string{"layers", "wheels", "trees"} {
		entries, err := os.ReadDir(s.path(kind))
		if err != nil {
			return g.found, err
		}
		for _, e := range entries {
			dir := s.path(kind, e.Name())
			info, err := os.Lstat(dir)
			if err != nil || !isDigest(e.Name()) || used[e.Name()] || time.Since(info.ModTime()) <= keep {
				continue
			}
			if kind == "trees" {
				if !g.tree(e.Name()) {
					continue
				}
			} else {
				g.remove(dir)
			}
			*counts[kind]++
		}
	}
	return g.found, nil
}

type collector struct {
	store  *Store
	dryRun bool
	found  Garbage
}

// remove removes a directory, and counts what it holds.
func (g *collector) remove(dir string) {
	g.found.Bytes += usageOf(dir)
	if !g.dryRun {
		_ = clearing.Tree(dir) // what stays is tried again
	}
}

// servers removes the installations whose server is gone, and the conversations, and returns the ids of these. A conversation
// is no garbage to tell of: it is a lock, and a document of what it had beside its environment, whose layers are told.
func (g *collector) servers() (over map[string]bool) {
	gone := map[string]bool{}
	over = map[string]bool{}
	for _, kind := range []string{"work", "conversations"} {
		entries, _ := os.ReadDir(g.store.path(kind))
		for _, e := range entries {
			id, _, _ := strings.Cut(e.Name(), ".")
			if !isID(id) || gone[kind+id] {
				continue
			}
			path := g.store.path(kind, id+".lock")
			held, err := filelock.Try(path, filelock.Alone)
			if err != nil {
				continue
			}
			gone[kind+id] = true
			dir := g.store.path(kind, id)
			if _, err := os.Lstat(dir); err == nil { // else it was killed before it made one, or after it had removed it
				g.found.Left++
				g.remove(dir)
			}
			over[id] = over[id] || kind == "conversations"
			if !g.dryRun {
				_ = os.Remove(g.store.path(kind, id+".json"))
				_ = os.Remove(path)
			}
			held.Unlock()
		}
	}
	return over
}

// tree removes a tree and reports whether it could: somebody may have a lease on it.
func (g *collector) tree(digest string) bool {
	path := g.store.path("trees", digest+".lease")
	held, err := filelock.Try(path, filelock.Alone)
	if err != nil {
		return false
	}
	defer held.Unlock()
	if !g.dryRun {
		_ = clearing.Tree(g.store.path("trees", digest))
		_ = os.Remove(path)
	}
	return true
}

// usageOf adds up the files below a directory.
func usageOf(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

// used are the digests of what environments and conversations name, but for those conversations that are over.
func (s *Store) used(over map[string]bool) (map[string]bool, error) {
	named, err := s.allEnvironments()
	if err != nil {
		return nil, err
	}
	bound, err := documents[binding](s.path("conversations"), over)
	if err != nil {
		return nil, err
	}
	for _, b := range bound {
		named = append(named, b.Extra)
	}
	used := map[string]bool{}
	for _, e := range named {
		for _, l := range e.Layers {
			used[l] = true
		}
		for _, p := range e.Packages {
			used[p.SHA256] = true
		}
	}
	return used, nil
}
