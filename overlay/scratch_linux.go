package overlay

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"airlock/internal/clearing"
	"airlock/internal/filelock"
)

// Scratch is where the layers of a workspace lie while its runs go:
//
//	BASE/lock                  held while servers come and go
//	BASE/SERVER/               locked by the living server; without a holder it is removed
//	BASE/SERVER/RUN/upper      the layer
//	BASE/SERVER/RUN/work       overlayfs's own
//	BASE/SERVER/RUN/copy       stands in for an overlay where there can be none
//	BASE/SERVER/RUN/inner-N    the layer of the Nth thing that is mounted in the workspace
//	BASE/SERVER/RUN/landing    what a landing brings and takes, until it is done
//	BASE/SERVER/RUN/pruned     what was taken out of new directories before they land
//	BASE/SERVER/ahead-N/       a RUN that is to come
//	BASE/SERVER/mask-N/        what hides paths from the runs that began with it
//	BASE/waiting/RUN/          a run that waits for review: its layer, and a record
//	BASE/history/ENTRY/        a landing that is done, with what it replaced and removed
//	BASE/interrupted-RUN/      a RUN whose landing could not be taken back: it can hold the only copy
//
// BASE is on the workspace's filesystem: in the state directory, or beside the workspace, or in it. Where that
// filesystem can't hold what overlayfs writes, upper, work, copy, inner-N and pruned are elsewhere: see away_linux.go.
const (
	insideName        = ".airlock"
	besidePrefix      = ".airlock-"
	probePrefix       = ".airlock-land-probe-"
	interruptedPrefix = "interrupted-"
	landingName       = "landing"
	upperName         = "upper"
	workName          = "work"
	historyName       = "history"
	waitingName       = "waiting"
)

// scratch is one server's part of it.
type scratch struct {
	base   *tree
	server *tree // holds the lock
	name   string
	inside bool   // BASE lies in the workspace, and runs must not see it
	own    bool   // BASE is ours to remove once it is empty
	mode   uint32 // of the directories on the way to a layer
	doubt  bool   // a journal could not be read: any landing of a dead server may be the one

	mu   sync.Mutex
	kept []string

	beside *beside // nil: nothing is done beside
	clock  clock
}

// now reads the moment on the clock of the scratch's filesystem, which is the workspace's.
func (s *scratch) now(ctx context.Context) (marker, error) { return s.clock.now(ctx, s.server) }

// begin makes the directory of a run. It may be one that was made ahead, if that is allowed, in which there are empty
// directories already.
func (s *scratch) begin(run string, ahead bool) (*tree, error) {
	if ahead && s.beside.take(s.server, run) {
		return s.server.sub(run)
	}
	return s.server.mkdir(run, s.mode)
}

// remove removes what belonged to a run, whose layers nothing writes to any more. Where that is done beside what comes
// next, it says nothing of its end.
func (s *scratch) remove(run string) error {
	if s.beside.do(func() {
		_ = clearing.Beneath(s.server.fd, run)
		s.beside.makeAhead(s.server, s.mode)
	}) {
		return nil
	}
	return clearing.Beneath(s.server.fd, run)
}

// removeBeside has what runs leave removed beside whatever comes next from now on, and the directories of the next runs
// made there, with these in them. What can't be removed then is tried again as the scratch is closed.
func (s *scratch) removeBeside(directories ...string) {
	s.beside = &beside{directories: directories, slots: make(chan struct{}, maxBeside), ending: make(chan struct{})}
	s.beside.do(func() { s.beside.makeAhead(s.server, s.mode) })
}

// openScratch finds the first place that layers can lie in, clears what dead servers left there and
// makes this server's directory. beside allows the place beside the workspace.
func openScratch(ctx context.Context, root *tree, owner inode, state string, doubt, beside bool) (*scratch, error) {
	mode, foreign := scratchMode(owner)
	var causes []error
	for _, c := range []*scratch{
		{base: &tree{path: filepath.Join(state, "layers")}},
		{base: &tree{path: besidePlace(root.path)}, own: true},
		{base: &tree{path: filepath.Join(root.path, insideName)}, own: true, inside: true},
	} {
		if c.own && !c.inside && !beside {
			continue
		}
		c.mode, c.doubt = mode, doubt
		err := c.open(ctx, root, owner, foreign, sameFilesystem)
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		causes = append(causes, err)
	}
	return nil, fmt.Errorf("overlay: no place for layers on the filesystem of %s: %w", root.path, errors.Join(causes...))
}

// besidePlace is the place beside a workspace.
func besidePlace(workspace string) string {
	return filepath.Join(filepath.Dir(workspace), besidePrefix+workspaceID(workspace))
}

// scratchMode is the mode of the directories on the way to a layer, and whether somebody else's runs use it.
func scratchMode(owner inode) (mode uint32, foreign bool) {
	if rootRights() && owner.uid != 0 {
		return 0o711, true // runs have the owner's identity, and must get through
	}
	return 0o700, false
}

// open takes a place, if suits says that it is one.
func (s *scratch) open(ctx context.Context, root *tree, owner inode, foreign bool, suits func(base, root *tree) error) (err error) {
	path := s.base.path
	if foreign {
		if err := reachable(filepath.Dir(path), owner.uid); err != nil {
			return err
		}
	}
	made := true
	if err := os.Mkdir(path, os.FileMode(s.mode)); errors.Is(err, fs.ErrExist) {
		made = false
	} else if err != nil {
		return err
	}
	if s.base, err = openTree(path); err != nil {
		return err
	}
	s.base.hook = root.hook
	defer func() {
		if err != nil {
			s.base.close()
			if made && s.own {
				os.Remove(path)
			}
		}
	}()
	if err := s.ours(); err != nil {
		return err
	}
	if err := suits(s.base, root); err != nil {
		return err
	}
	lock, err := filelock.Wait(ctx, filepath.Join(path, "lock"), filelock.Alone)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := s.sweep(); err != nil {
		return err
	}
	if s.inside {
		// Keeps it out of the person's commits; a file that is there already is left.
		_ = os.WriteFile(filepath.Join(path, ".gitignore"), []byte("*\n"), 0o600)
	}
	var random [8]byte
	rand.Read(random[:])
	s.name = fmt.Sprintf("%d-%s", os.Getpid(), hex.EncodeToString(random[:]))
	if s.server, err = s.base.mkdir(s.name, s.mode); err != nil {
		return err
	}
	spread(s.server, "/sys")
	if err := unix.Flock(s.server.fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		s.server.close()
		return s.base.fail("lock", s.name, err)
	}
	return nil
}

func (s *scratch) addKept(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, filepath.Join(s.base.path, name))
}

// interrupted returns the runs that were put aside.
func (s *scratch) interrupted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kept)
}

// leave lets go of what this server made.
func (s *scratch) leave() {
	s.beside.end()
	s.clock.close()
	s.base.close()
	s.server.close()
}

// close removes what this server made, and BASE if nobody else needs it.
func (s *scratch) close() error {
	s.beside.end()
	s.clock.close()
	defer s.base.close()
	defer s.server.close()
	path := filepath.Join(s.base.path, "lock")
	lock, err := filelock.Wait(context.Background(), path, filelock.Alone)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := clearing.Beneath(s.base.fd, s.name); err != nil {
		return err
	}
	if !s.own {
		return nil
	}
	return vacate(s.base)
}

// vacate removes a place of layers that nobody needs: there is no server, nothing waits for review, and no landing is
// remembered. The place's lock is held.
func vacate(base *tree) error {
	names, err := base.list("")
	if err != nil {
		return err
	}
	for _, n := range names {
		if !slices.Contains([]string{waitingName, historyName, "lock", ".gitignore"}, n) {
			return nil
		}
	}
	for _, n := range []string{waitingName, historyName} {
		if err := unix.Unlinkat(base.fd, n, unix.AT_REMOVEDIR); err == unix.ENOTEMPTY {
			return nil
		} else if err != nil && err != unix.ENOENT {
			return base.fail("remove", n, err)
		}
	}
	for _, n := range []string{".gitignore", "lock"} {
		if err := unix.Unlinkat(base.fd, n, 0); err != nil && err != unix.ENOENT {
			return base.fail("remove", n, err)
		}
	}
	if err := unix.Rmdir(base.path); err != nil && err != unix.ENOTEMPTY {
		return base.fail("remove", "", err)
	}
	return nil
}
