package overlay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Workspace is a directory whose changes are made by transactions. It is safe for concurrent use,
// and other processes may have the same directory open.
type Workspace struct {
	root    *tree
	id      inode // what root was when it was opened
	state   string
	config  Config
	filter  filter
	scratch *scratch
	trusted bool // ctimes of its filesystem can be trusted
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
	root, err := openTree(dir)
	if err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	w := &Workspace{root: root, config: c, filter: f}
	if err := w.open(stateDir); err != nil {
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
	sum := sha256.Sum256([]byte(w.root.path))
	id := hex.EncodeToString(sum[:8])
	w.state = filepath.Join(stateDir, "workspaces", id)
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 && w.id.uid != 0 {
		mode = 0o711
	}
	if err := os.MkdirAll(w.state, mode); err != nil {
		return err
	}
	return w.changeRoot(func() error {
		w.scratch, err = openScratch(context.Background(), w.root, w.id, id, w.state)
		return err
	})
}

// changeRoot calls f, which may make and remove names of ours in the workspace, and leaves a
// footprint for it.
func (w *Workspace) changeRoot(f func() error) error {
	lock, err := w.lock(context.Background(), unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.unlock()
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
	return addFootprints(w.state, []footprint{{ino: after.ino, before: before.ctime, after: after.ctime}})
}

// Interrupted names the directories that hold what is left of landings that were cut off, or that
// could not be taken back. They are never removed by themselves: they can hold the only copy of
// content of the workspace, under upper/ and taken/.
func (w *Workspace) Interrupted() []string { return w.scratch.interrupted() }

// Close removes this server's scratch, and with it the layers of transactions that have not ended.
func (w *Workspace) Close() error {
	err := w.changeRoot(w.scratch.close)
	return errors.Join(err, w.root.close())
}

// lock waits for the landings of this workspace, in any process, to be done.
func (w *Workspace) lock(ctx context.Context, how int) (*fileLock, error) {
	return lockFile(ctx, filepath.Join(w.state, "lock"), how)
}

// unmoved makes sure that the path of the workspace still leads to the directory that is open.
func (w *Workspace) unmoved() error {
	i, err := statAt(unix.AT_FDCWD, w.root.path)
	if err != nil {
		return err
	}
	if i.kind != directory || i.ino != w.id.ino || i.dev != w.id.dev {
		return fmt.Errorf("%s is not the directory that it was when this server started", w.root.path)
	}
	return nil
}

// Txn is one transaction: a layer, and the moment from which on a change of the workspace is
// someone else's. It ends with one call of Land or Discard, whatever that returns; the layer is
// gone then.
type Txn struct {
	w       *Workspace
	run     string
	dir     *tree // BASE/SERVER/RUN
	upper   *tree
	begin   marker
	trusted bool
	ended   bool
	modes   map[string]uint32 // what entries of the layer had before we had to make them readable
	stuck   bool              // a landing could not be taken back: the layer holds content of the workspace
}

// Begin starts a transaction. run names it: letters a to z and digits, at most 64, unused by any
// other transaction of this server that has not ended.
func (w *Workspace) Begin(ctx context.Context, run string) (*Txn, error) {
	if run == "" || len(run) > 64 || strings.Trim(run, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return nil, fmt.Errorf("overlay: %q is not the id of a run", run)
	}
	if err := w.unmoved(); err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	dir, err := w.scratch.server.mkdir(run, w.scratch.mode)
	if err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	t := &Txn{w: w, run: run, dir: dir, trusted: w.trusted, modes: map[string]uint32{}}
	if err := t.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("overlay: begin: %w", err), t.end())
	}
	return t, nil
}

func (t *Txn) prepare(ctx context.Context) (err error) {
	root, err := statAt(t.w.root.fd, "")
	if err != nil {
		return err
	}
	if t.upper, err = t.dir.mkdir("upper", root.mode); err != nil {
		return err
	}
	work, err := t.dir.mkdir("work", 0o700)
	if err != nil {
		return err
	}
	defer work.close()
	taken, err := t.dir.mkdir("taken", 0o700)
	if err != nil {
		return err
	}
	defer taken.close()
	if os.Geteuid() == 0 {
		for _, d := range []*tree{t.upper, work} {
			if err := unix.Fchown(d.fd, int(root.uid), int(root.gid)); err != nil {
				return d.fail("chown", "", err)
			}
		}
	} else {
		// A group that we are not in can't be given; the files of the run get ours then.
		_ = unix.Fchown(t.upper.fd, -1, int(root.gid))
	}
	// chown drops set-ID bits.
	if err := unix.Fchmod(t.upper.fd, root.mode); err != nil {
		return t.upper.fail("chmod", "", err)
	}
	if t.w.scratch.inside {
		if err := unix.Mknodat(t.upper.fd, insideName, unix.S_IFCHR, 0); err != nil {
			return t.upper.fail("make whiteout", insideName, err)
		}
	}
	// After the landing that goes on now, if any: what it lands was there before this run.
	lock, err := t.w.lock(ctx, unix.LOCK_SH)
	if err != nil {
		return err
	}
	defer lock.unlock()
	t.begin, err = takeMarker(ctx, t.dir)
	return err
}

// Layer returns the paths to mount.
func (t *Txn) Layer() Layer {
	return Layer{
		Lower: t.w.root.path,
		Upper: t.upper.path,
		Work:  filepath.Join(t.dir.path, "work"),
	}
}

// Land brings the changes of the run into the workspace. No process may write to the layer any
// more, and it must not be mounted.
//
// If the error is not nil, nothing landed, and the Report says how many changes were thrown away.
// A conflict is not an error.
func (t *Txn) Land(ctx context.Context) (Report, error) {
	if t.ended {
		return Report{}, errors.New("overlay: bug: transaction ended twice")
	}
	report, err := t.land(ctx)
	report.sort()
	if err := errors.Join(err, t.end()); err != nil {
		return report, fmt.Errorf("overlay: land: %w", err)
	}
	return report, nil
}

// Discard throws the changes of the run away. reason says why, in the words of the summary:
// "timeout". The conditions are those of Land. The layer is removed even if the error, which then
// is about counting, is not nil.
func (t *Txn) Discard(reason string) (Report, error) {
	if t.ended {
		return Report{}, errors.New("overlay: bug: transaction ended twice")
	}
	c, err := t.collect(context.Background(), t.trusted)
	report := Report{Discarded: c.count(), Reason: reason}
	if err := errors.Join(err, t.end()); err != nil {
		return report, fmt.Errorf("overlay: discard: %w", err)
	}
	return report, nil
}

// end removes the layer, or puts it aside where that would lose something.
func (t *Txn) end() error {
	t.ended = true
	if t.upper != nil {
		t.upper.close()
	}
	defer t.dir.close()
	if t.stuck {
		return t.w.scratch.keep(t.w.scratch.server, t.run)
	}
	return removeTree(t.w.scratch.server.fd, t.run)
}
