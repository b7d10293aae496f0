package overlay

import (
	"errors"
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
	if err := w.own.replace(journalName, text, w.config.Durable); err != nil {
		return err
	}
	return w.sync(w.own, "")
}

// removeJournal forgets the landing.
func (w *Workspace) removeJournal() error {
	w.point()
	if err := unix.Unlinkat(w.own.fd, journalName, 0); err != nil && err != unix.ENOENT {
		return w.own.fail("remove", journalName, err)
	}
	return w.sync(w.own, "")
}

// interruptedLanding reports whether there is a journal.
func (w *Workspace) interruptedLanding() (bool, error) {
	i, err := statAt(w.own.fd, journalName)
	return i.kind != absent, err
}

// replace puts a file of ours with this content in the place of one of that name, whole or not at all.
func (t *tree) replace(name string, text []byte, durable bool) error {
	beside := name + ".new"
	if err := t.write(beside, text, durable); err != nil {
		return err
	}
	t.point()
	return t.fail("rename", beside, unix.Renameat(t.fd, beside, t.fd, name))
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
	t.point()
	for len(text) > 0 && err == nil {
		var n int
		n, err = retry(func() (int, error) { return unix.Write(fd, text) })
		text = text[max(0, n):]
	}
	if err == nil && durable {
		err = retryIntr(func() error { return unix.Fsync(fd) })
	}
	return errors.Join(t.fail("write", name, err), t.fail("close", name, unix.Close(fd)))
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
