package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"airlock/internal/filelock"
)

// lockClean waits for the lock on the workspace, for ourselves alone, and takes back a landing that was
// cut off.
func (w *Workspace) lockClean(ctx context.Context) (*filelock.Lock, error) {
	lock, err := w.lock(ctx, filelock.Alone)
	if err != nil {
		return nil, err
	}
	if err := w.recover(); err != nil {
		lock.Unlock()
		return nil, err
	}
	return lock, nil
}

// lockShared waits for the landing that goes on now, if any. A landing that was cut off is taken back
// first.
func (w *Workspace) lockShared(ctx context.Context) (*filelock.Lock, error) {
	for {
		lock, err := w.lock(ctx, filelock.Shared)
		if err != nil {
			return nil, err
		}
		cut, err := w.interruptedLanding()
		if err == nil && !cut {
			return lock, nil
		}
		lock.Unlock()
		if err != nil {
			return nil, err
		}
		if lock, err = w.lockClean(ctx); err != nil {
			return nil, err
		}
		lock.Unlock()
	}
}

// recover deals with the journal of a landing that was cut off, if there is one. The lock on the
// workspace is held for us alone, so its writer is gone. What it can't deal with it puts aside, so
// that one bad landing does not stop all that follow.
func (w *Workspace) recover() error {
	w.point()
	if cut, err := w.interruptedLanding(); err != nil || !cut {
		return err
	}
	text, err := os.ReadFile(w.journalPath())
	if err != nil {
		return err
	}
	r, err := decodeRecord(text)
	if err != nil {
		return w.setAside(filepath.Join(w.state, interruptedPrefix+"journal"), nil, "", err)
	}
	if filepath.Base(string(r.Layer)) != r.Run || !filepath.IsAbs(string(r.Layer)) {
		return w.setAside(filepath.Join(w.state, interruptedPrefix+"journal"), nil, "", errDamaged)
	}
	return w.recoverRecord(r)
}

func (w *Workspace) recoverRecord(r record) error {
	server := filepath.Dir(string(r.Layer))
	base, err := openTree(filepath.Dir(server))
	if errors.Is(err, fs.ErrNotExist) {
		return w.removeJournal() // with all that it speaks of
	}
	if err != nil {
		return err
	}
	defer base.close()
	base.hook = w.hook
	l, done, err := w.landerOf(base, r)
	if err != nil {
		return err
	}
	if l == nil {
		return w.removeJournal()
	}
	defer l.landing.close()
	if !done && r.With != nil {
		if done, err = w.landedWith(r.With); err == nil && done {
			err = l.enterRecovered(r, base)
		}
		if err != nil {
			return err
		}
	}
	if done {
		l.settle(r, base)
		l.leaveFootprints()
		return w.interruptedStill()
	}
	if err = w.unmovedSince(r); err == nil {
		err = l.noteCut()
	}
	if err == nil {
		err = l.rollBack()
	}
	if err == nil && r.Waited {
		l.seeAgain(base)
	}
	if err != nil {
		run := joinPath(filepath.Base(server), r.Run)
		return w.setAside(filepath.Join(base.path, interruptedPrefix+r.Run), base, run, err)
	}
	l.leaveFootprints()
	note := "The landing of run " + r.Run + " had been cut off, and was taken back"
	if r.Waited {
		note += "; it waits for review again"
	}
	w.addNote(note + ".")
	for _, n := range l.report.Notes {
		w.addNote(n)
	}
	return w.removeJournal()
}

// interruptedStill is an error if there is a journal yet.
func (w *Workspace) interruptedStill() error {
	cut, err := w.interruptedLanding()
	if err == nil && cut {
		err = errors.New("the journal of a landing that is done can't be removed")
	}
	return err
}

// unmovedSince makes sure that the workspace is the directory that the landing was of.
func (w *Workspace) unmovedSince(r record) error {
	now, err := statAt(w.root.fd, "")
	if err != nil {
		return err
	}
	if now.ino != r.Root.Ino {
		return fmt.Errorf("%s is not the directory that it was", w.root.path)
	}
	return nil
}

// landerOf makes a lander of what was recorded. done says that the landing is in the history; without
// a lander nothing of it is left.
func (w *Workspace) landerOf(base *tree, r record) (l *lander, done bool, err error) {
	root, err := statAt(w.root.fd, "")
	if err != nil {
		return nil, false, err
	}
	l = &lander{
		w: w, runID: r.Run, host: w.root, opened: r.Opened,
		modes: map[string]inode{}, lastPrint: map[uint64]int{}, moved: map[uint64]bool{}, taken: map[int]bool{},
	}
	if r.Marker != nil {
		l.marker = &stamp{r.Marker.Sec, r.Marker.Nsec}
	}
	for _, recorded := range r.Steps {
		s, err := recorded.step(r.Root.Dev, root.dev)
		if err != nil {
			return nil, false, err
		}
		l.steps = append(l.steps, s)
	}
	l.landing, err = base.sub(joinPath(historyName, r.Entry))
	if err == nil {
		return l, true, nil
	}
	if !is(err, unix.ENOENT) {
		return nil, false, err
	}
	rel, err := filepath.Rel(base.path, string(r.Layer))
	if err != nil {
		return nil, false, err
	}
	l.landing, err = base.sub(joinPath(rel, landingName))
	if is(err, unix.ENOENT) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return l, false, l.readStamps()
}

// setAside keeps a landing that can't be dealt with: the directory of its run, if there is one, and
// its journal.
func (w *Workspace) setAside(kept string, base *tree, run string, cause error) error {
	dir, err := openTree(filepath.Dir(kept))
	if err != nil {
		return err
	}
	defer dir.close()
	place := filepath.Join(dir.path, freeName(dir, filepath.Base(kept)))
	if base != nil {
		err = unix.Renameat2(base.fd, run, dir.fd, filepath.Base(place), unix.RENAME_NOREPLACE)
	} else {
		err = os.Mkdir(place, 0o700)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(w.journalPath())
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(place, journalName), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("a landing that was cut off can't be taken back (%w) nor be put aside: %w", cause, err)
	}
	w.addKept(place)
	w.addNote(fmt.Sprintf("A landing had been cut off and can't be taken back (%s); what it left is kept in %s.", Quote(cause.Error()), Quote(place)))
	return w.removeJournal()
}

// keptJournals notes the journals that could not be read, of earlier times too, and reports whether
// there are any.
func (w *Workspace) keptJournals() (any bool, err error) {
	names, err := os.ReadDir(w.state)
	for _, n := range names {
		if strings.HasPrefix(n.Name(), interruptedPrefix) {
			any = true
			w.addKept(filepath.Join(w.state, n.Name()))
		}
	}
	return any, err
}

// addKept notes a directory that was put aside.
func (w *Workspace) addKept(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.kept, path) {
		w.kept = append(w.kept, path)
	}
}

func (w *Workspace) addNote(sentence string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, sentence)
}

// TakeNotes returns what has to be said of landings that were cut off and that this Workspace came
// upon, each a sentence, and forgets it. The next Report of a landing carries it otherwise.
func (w *Workspace) TakeNotes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	notes := w.notes
	w.notes = nil
	return notes
}
