package overlay

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Txn is one transaction: a layer, and the moment from which on a change of the workspace is
// someone else's. It ends with one call of Land, Park or Discard, whatever that returns; the layer is
// gone then, or waits for review.
type Txn struct {
	w       *Workspace
	run     string
	dir     *tree // BASE/SERVER/RUN
	layers  *tree // where its layers lie: the same, or a directory of that kind elsewhere
	away    *scratch
	upper   *tree
	landing *tree // RUN/landing
	mask    *mask // nil if nothing is hidden
	hiding  []hidingDir
	what    string
	begin   marker
	trusted bool
	ended   bool
	modes   map[string]uint32 // what entries of the layer had before we had to make them readable
	base    gitBase           // what the landing compares git's index with
	filter  filter            // of parked
	noted   sightings         // set while what waits for review is judged for the first time
	parked  *waitingRecord    // of a run that waited for review, once it lands or is shown
	git     *Txn              // of the git directory outside of the workspace that the run uses; nil if none
	via     string            // see Layer
	shared  *sharedGit        // of a git directory that is a linked worktree's: what may land
	notes   []string          // for the report
	stuck   bool              // a landing could not be taken back: the layer holds content of the workspace

	copied *privateCopy  // stands in for the overlay of the workspace, if it is not nil
	inner  []*innerLayer // of what is mounted in the workspace
	hidden []string      // what is mounted there and can't be shown, a sentence each
	moved  bool          // the changes of the copies are in their uppers
	lost   []Withheld    // those of the landing that are of what is mounted, and never land
}

// Begin starts a transaction. run names it: letters a to z and digits, at most 64, unused by any
// other transaction of this server that has not ended.
func (w *Workspace) Begin(ctx context.Context, run string) (*Txn, error) {
	return w.begin(ctx, run, nil)
}

func (w *Workspace) begin(ctx context.Context, run string, shared *sharedGit) (*Txn, error) {
	if !isRunID(run) {
		return nil, fmt.Errorf("overlay: %q is not the id of a run", run)
	}
	if w.config.Mode == "readonly" {
		return nil, errReadOnly
	}
	if w.config.Mode == "direct" {
		return nil, errDirect
	}
	if err := w.unmoved(); err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	if i, err := statAt(w.scratch.base.fd, joinPath(waitingName, run)); err == nil && i.kind != absent {
		return nil, fmt.Errorf("overlay: %s is the id of a run that waits for review", run)
	}
	away := w.awayNow()
	dir, err := w.scratch.begin(run, away == nil)
	if err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	t := &Txn{w: w, run: run, shared: shared, dir: dir, layers: dir, away: away, trusted: w.trusted, modes: map[string]uint32{}}
	if err := t.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("overlay: begin: %w", err), t.end())
	}
	if err := t.beginGit(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("overlay: begin: %w", err), t.end())
	}
	return t, nil
}

func (t *Txn) prepare(ctx context.Context) (err error) {
	root, err := statAt(t.w.root.fd, "")
	if err != nil {
		return err
	}
	if t.away != nil {
		if t.w.config.LandOn == "review" {
			return fmt.Errorf("what waits for review (workspace.land_on) waits on the filesystem of %s, which can't hold the layers of runs", Quote(t.w.root.path))
		}
		if t.layers, err = t.away.server.mkdir(t.run, t.away.mode); err != nil {
			t.layers = t.dir
			return err
		}
	}
	if t.upper, err = newUpper(t.layers, root, root); err != nil {
		return err
	}
	if t.landing, err = t.dir.ensure(landingName, 0o700); err != nil {
		return err
	}
	if err := t.copyRootAttributes(root); err != nil {
		return err
	}
	if t.w.scratch.inside {
		if err := unix.Mknodat(t.upper.fd, insideName, unix.S_IFCHR, 0); err != nil {
			return t.upper.fail("make whiteout", insideName, err)
		}
	}
	// After the landing that goes on now, if any: what it lands was there before this run.
	lock, err := t.w.lockShared(ctx)
	if err != nil {
		return err
	}
	t.begin, err = t.w.scratch.now(ctx)
	lock.Unlock()
	if err != nil {
		return err
	}
	// After the marker: a change that it does not show as one is in what is compared with.
	t.base = openGitBase(t.w.root, t.shared)
	if err := t.prepareMounts(ctx, root); err != nil || t.copied != nil {
		return err // what is hidden is not in the copy
	}
	// After the marker: a mask repeats the modes of directories, and one that someone changes once it did
	// is a conflict.
	t.mask, t.hiding, err = t.w.masks.take(t.begin.at, t.w.maskPlace(t.away))
	return err
}

// Describe says what the run does, for the history: the tool, or the command line. Only the first
// kilobyte is kept.
func (t *Txn) Describe(what string) {
	t.what = shortened(what)
}

// Layers returns all that has to be mounted, the workspace's own layer first. Each is seen at the path
// of its Lower.
func (t *Txn) Layers() []Layer {
	layers := []Layer{t.Layer()}
	for _, l := range t.inner {
		layers = append(layers, l.layer())
	}
	if t.git != nil {
		layers = append(layers, t.git.Layers()...)
	}
	return layers
}

// Layer returns the paths to mount over the workspace itself.
func (t *Txn) Layer() Layer {
	if t.copied != nil {
		return Layer{Lower: t.w.root.path, Copy: t.copied.tree.path, Via: t.via}
	}
	return Layer{
		Lower: t.w.root.path,
		Upper: t.upper.path,
		Work:  filepath.Join(t.layers.path, "work"),
		Mask:  t.mask.path(),
		Via:   t.via,
	}
}

// Land brings the changes of the run into the workspace. No process may write to the layer any
// more, and it must not be mounted. The end of ctx ends a landing that has not changed anything yet.
//
// If the error is not nil, nothing landed, and the Report says how many changes were thrown away.
// A conflict is not an error.
func (t *Txn) Land(ctx context.Context) (Report, error) {
	if t.ended {
		return Report{}, errors.New("overlay: bug: transaction ended twice")
	}
	report, err := t.land(ctx)
	if !report.Landed || err != nil {
		t.lost = nil
	}
	report.Notes = slices.Concat(report.Notes, t.mountNotes(t.lost), t.notes, t.w.TakeNotes())
	report.sort()
	end := t.end()
	if report.Landed && end != nil {
		// Close, or the next start, tries again.
		report.Notes = append(report.Notes, "What is left of the run's layer could not be removed: "+Quote(end.Error())+".")
		end = nil
	}
	if err := errors.Join(err, end); err != nil {
		return report, fmt.Errorf("overlay: land: %w", err)
	}
	return report, nil
}

// discardTime is how long a discard counts what it throws away.
const discardTime = 2 * time.Second

// Discard throws the changes of the run away. reason says why, in the words of the summary:
// "timeout". The conditions are those of Land. The layer is removed even if the error, which then
// is about counting, is not nil.
func (t *Txn) Discard(reason string) (Report, error) {
	if t.ended {
		return Report{}, errors.New("overlay: bug: transaction ended twice")
	}
	ctx, cancel := context.WithTimeout(context.Background(), discardTime)
	defer cancel()
	err := t.moveChanges(ctx)
	report := Report{Reason: reason, Notes: append(t.mountNotes(nil), t.notes...)}
	if err == nil {
		var c *collector
		c, err = t.collect(ctx, t.trusted)
		report.Discarded = c.count() + len(t.innerChanges(ctx))
	}
	if t.git != nil && err == nil {
		if err = t.git.moveChanges(ctx); err == nil {
			var c *collector
			c, err = t.git.collect(ctx, t.git.trusted)
			report.Discarded += c.count() + len(t.git.innerChanges(ctx))
		}
	}
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		report.Notes = append(report.Notes, "There were more changes than could be counted quickly.")
		err = nil
	}
	if err := errors.Join(err, t.end()); err != nil {
		return report, fmt.Errorf("overlay: discard: %w", err)
	}
	return report, nil
}

// end removes the layer, or puts it aside where that would lose something.
func (t *Txn) end() error {
	var away error
	if t.git != nil {
		away = t.git.end()
	}
	t.close()
	if t.layers != nil && t.layers != t.dir {
		away = errors.Join(away, t.away.remove(t.run))
	}
	if t.stuck {
		return away // it was put aside
	}
	return errors.Join(away, t.w.scratch.remove(t.run))
}

// close ends the transaction without a look at what is on the disk.
func (t *Txn) close() {
	t.ended = true
	t.base.close()
	_ = t.w.masks.release(t.mask) // what can't be removed goes with this server's directory
	t.mask = nil
	for _, dir := range []*tree{t.upper, t.landing} {
		if dir != nil {
			dir.close()
		}
	}
	if t.copied != nil {
		t.copied.tree.close()
	}
	for _, l := range t.inner {
		l.close()
	}
	if t.layers != nil && t.layers != t.dir {
		t.layers.close()
	}
	t.dir.close()
}
