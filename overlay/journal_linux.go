package overlay

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The journal is one file in the workspace's part of the state directory. It is there from before the
// first step of a landing is taken until the landing is in the history, or has been taken back; the
// lock on the workspace is held all that time. So whoever holds the lock and finds a journal knows
// that a landing was cut off:
//
//	stage     what is to come lies in RUN/landing, under the numbers of the steps
//	record    the journal is written beside and renamed into place
//	apply     each step is one rename between the workspace and RUN/landing, or one chmod
//	finish    RUN/landing, with a record of what landed, is renamed into the history: from that moment
//	          on the landing is done, and before it there was none. Then the journal goes.
//
// Recovery takes back what is found with RUN/landing in its place, and for what is found in the
// history does the little that comes after.

const journalName = "journal"

func (w *Workspace) journalPath() string { return filepath.Join(w.state, journalName) }

// writeJournal writes it whole or not at all.
func (w *Workspace) writeJournal(r record) error {
	text, err := r.encode()
	if err != nil {
		return err
	}
	state, err := openTree(w.state)
	if err != nil {
		return err
	}
	defer state.close()
	state.hook = w.hook
	const beside = journalName + ".new"
	if err := state.write(beside, text, w.config.Durable); err != nil {
		return err
	}
	state.point()
	if err := unix.Renameat(state.fd, beside, state.fd, journalName); err != nil {
		return state.fail("rename", beside, err)
	}
	return w.sync(state, "")
}

// removeJournal forgets the landing.
func (w *Workspace) removeJournal() error {
	w.point()
	if err := os.Remove(w.journalPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !w.config.Durable {
		return nil
	}
	state, err := openTree(w.state)
	if err != nil {
		return err
	}
	defer state.close()
	return w.sync(state, "")
}

// interruptedLanding reports whether there is a journal.
func (w *Workspace) interruptedLanding() (bool, error) {
	_, err := os.Lstat(w.journalPath())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// write makes a file of ours with this content. One of that name that an earlier attempt left is
// replaced.
func (t *tree) write(name string, text []byte, durable bool) error {
	t.point()
	fd, err := retry(func() (int, error) {
		return unix.Openat(t.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return t.fail("create", name, err)
	}
	f := os.NewFile(uintptr(fd), filepath.Join(t.path, name))
	t.point()
	_, err = f.Write(text)
	if err == nil && durable {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// point is where a test may end the process: before every call to the system that a landing or a
// recovery makes.
func (w *Workspace) point() {
	if w.hook != nil {
		w.hook()
	}
}

func (t *tree) point() {
	if t.hook != nil {
		t.hook()
	}
}
