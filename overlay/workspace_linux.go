package overlay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"airlock/internal/filelock"
)

// Workspace is a directory whose changes are made by transactions. It is safe for concurrent use,
// and other processes may have the same directory open.
type Workspace struct {
	root    *tree
	id      inode // what root was when it was opened
	state   string
	own     *tree // state, held open
	config  Config
	filter  filter
	gitUser GitUser
	masks   *masks // nil if nothing is hidden
	mounts  mountTable
	holder  holder // for mode "direct"
	scratch *scratch
	views   *scratch // where masks lie if that can't be scratch, or nil
	isGit   bool     // it is a git directory that is another workspace's
	trusted bool     // ctimes of its filesystem can be trusted
	hook    func()   // see point

	// gitRule judges directories outside that would be used as git directories; see AllowGit.
	gitRule func(dir string) error
	gitMu   sync.Mutex
	gits    map[string]*Workspace // git directories outside that are open
	oldGits []*Workspace          // that are not at their paths any more

	historyMu sync.Mutex
	listed    listed

	mu    sync.Mutex
	kept  []string // directories of landings that were put aside
	notes []string // see TakeNotes

	refused map[string]bool // see Refuse
	copies  int64           // see LimitCopies
	away    *scratch        // where layers lie that can't lie in scratch, if it is not nil
	tried   int             // of the places for that
	left    []*scratch      // those that were in use before
}

// Open opens the workspace at dir, a real absolute path. stateDir is airlock's own directory for
// what outlives a process; it is made where it is missing. What servers that are gone left behind is
// removed. The error names every place that was tried for layers, and why it was not taken.
func Open(dir, stateDir string, c Config) (*Workspace, error) {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
		return nil, fmt.Errorf("overlay: %q is not an absolute, clean path", dir)
	}
	f, err := newFilter(c)
	if err != nil {
		return nil, err
	}
	return open(dir, stateDir, c, f, nil)
}

func open(dir, stateDir string, c Config, f filter, hook func()) (*Workspace, error) {
	return openAs(dir, stateDir, c, f, hook, false)
}

func openAs(dir, stateDir string, c Config, f filter, hook func(), isGit bool) (*Workspace, error) {
	root, err := openTree(dir)
	if err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	root.hook = hook
	w := &Workspace{root: root, config: c, filter: f, hook: hook, isGit: isGit}
	if err := w.open(stateDir); err != nil {
		if w.own != nil {
			w.own.close()
		}
		root.close()
		return nil, fmt.Errorf("overlay: %w", err)
	}
	return w, nil
}

func (w *Workspace) open(stateDir string) (err error) {
	if w.id, err = statAt(w.root.fd, ""); err != nil {
		return err
	}
	if w.trusted, err = ctimeTrusted(w.root); err != nil {
		return err
	}
	w.state = filepath.Join(stateDir, "workspaces", workspaceID(w.root.path))
	mode := os.FileMode(0o700)
	if rootRights() && w.id.uid != 0 {
		mode = 0o711
	}
	if err := os.MkdirAll(w.state, mode); err != nil {
		return err
	}
	if w.own, err = openTree(w.state); err != nil {
		return err
	}
	w.own.hook = w.hook
	return w.changeRoot(func() error {
		// Before the scratch is swept of what dead servers left there.
		if err := w.recover(); err != nil {
			return err
		}
		doubt, err := w.keptJournals()
		if err != nil {
			return err
		}
		if w.config.Mode == "readonly" || w.config.Mode == "direct" {
			w.scratch, err = w.openViews(doubt)
			return err
		}
		if w.scratch, err = openScratch(context.Background(), w.root, w.id, w.state, doubt, !w.isGit); err != nil {
			return err
		}
		if holdsLayers(w.scratch.server, w.root) != nil {
			w.openAway()
		}
		return w.notePlace()
	})
}

// Hide keeps paths from the runs that begin from now on: they look absent, and what a run writes at one
// does not land. It is called once, before the first transaction.
func (w *Workspace) Hide(h Hidden) error {
	if w.filter.hidden = h; len(h.rules) == 0 {
		return nil
	}
	w.masks = &masks{index: newHiddenIndex(h, w.root, w.trusted)}
	if !w.scratch.inside {
		return nil
	}
	// One lower layer can't lie in another.
	views, err := w.openViews(false)
	if err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	w.views, w.masks.index.own = views, insideName
	return nil
}

// maskPlace is where masks lie for runs whose layers lie away, if they do.
func (w *Workspace) maskPlace(away *scratch) *tree {
	switch {
	case away != nil:
		return away.server
	case w.views != nil:
		return w.views.server
	}
	return w.scratch.server
}

// changeRoot calls f, which may make and remove names of ours in the workspace, and leaves a
// footprint for it.
func (w *Workspace) changeRoot(f func() error) error {
	lock, err := w.lock(context.Background(), filelock.Alone)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	before, err := statAt(w.root.fd, "")
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	after, err := statAt(w.root.fd, "")
	if err != nil || after.ctime == before.ctime {
		return err
	}
	return addFootprints(w.state, footprints{moved: []footprint{{ino: after.ino, before: before.ctime, after: after.ctime}}})
}

// Interrupted names the directories that hold what is left of landings that failed, or were cut off,
// and could not be taken back. They are never removed by themselves: they can hold the only copy of
// content of the workspace, under landing/.
func (w *Workspace) Interrupted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := slices.Concat(w.scratch.interrupted(), w.kept)
	slices.Sort(kept)
	return slices.Compact(kept)
}

// closeScratch removes this server's scratch, unless it holds what a landing took out of the workspace that
// can't be given back yet: then it is left to the next server.
func (w *Workspace) closeScratch() error {
	if err := w.recover(); err != nil {
		w.scratch.leave()
		return err
	}
	return w.scratch.close()
}

// RemoveBeside has the layers of transactions that have ended removed beside whatever comes next, from now on: the report
// of a run does not wait for it, and does not say what of it failed. Close waits, and tries again.
func (w *Workspace) RemoveBeside() { w.scratch.removeBeside(upperName, workName, landingName) }

// Close removes this server's scratch, and with it the layers of transactions that have not ended.
func (w *Workspace) Close() error {
	locked := false
	err := errors.Join(w.closeGits(), w.changeRoot(func() error {
		locked = true
		return w.closeScratch()
	}))
	if !locked {
		w.scratch.leave() // the next server removes it
	}
	if w.views != nil {
		w.left = append(w.left, w.views)
	}
	if w.away != nil {
		w.left = append(w.left, w.away)
	}
	for _, place := range w.left {
		err = errors.Join(err, place.close())
	}
	return errors.Join(err, w.own.close(), w.root.close())
}

// lock waits for the landings of this workspace, in any process, to be done.
func (w *Workspace) lock(ctx context.Context, how filelock.Mode) (*filelock.Lock, error) {
	return filelock.Wait(ctx, filepath.Join(w.state, "lock"), how)
}

// unmoved makes sure that the path of the workspace still leads to the directory that is open.
func (w *Workspace) unmoved() error {
	i, err := statAt(unix.AT_FDCWD, w.root.path)
	if err != nil {
		return err
	}
	if i.kind != directory || i.ino != w.id.ino || i.dev != w.id.dev {
		return fmt.Errorf("%s is not the directory that it was when this server started; restart airlock to work in the one that is there now", Quote(w.root.path))
	}
	return nil
}
