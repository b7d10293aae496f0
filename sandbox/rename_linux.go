package sandbox

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// renamer makes rename(2) of a directory work on an overlay. There the kernel renames a directory only
// if all of it lies in the upper layer, and else says EXDEV, since an ordinary user's overlay can't note
// where a directory came from. Programs don't expect that between two names in one directory.
//
//	payload                     receiver                          mover
//	  │ rename(2) ── filter ──▶ │ reads the path                    │
//	  ┆ waits                   │ no directory of an overlay:       │
//	  │ ◀──────── let pass ──── │ the kernel goes on                │
//	  │                         │ else ───────────────────────────▶ │ opens both parents
//	  ┆                         │ next call                         │ tries the call itself
//	  ┆                                                             │ EXDEV: makes the directory a pure
//	  ┆                                                             │ upper one (mover.detach), tries again
//	  │ ◀──────────────────────────────────────────────── answer ── │
//
// Links of files go the same way, for a reason of their own: see mover.link.
//
// Receiver and mover are threads of init. They act for the payload on what the payload wrote, so they
// have what it has and no more: the same user, groups, root and mounts, no capability, the same filter
// but for the notification. What they open they name by the caller's own descriptors and working
// directory; what they do is done below descriptors that they opened, on arguments that they read once.
type renamer struct {
	devices map[uint64]bool // of the overlays
	start   chan listener
	todo    chan notification

	mu    sync.Mutex // held while a call is carried out
	mover mover
}

// maxWaitingRenames bounds the calls that wait for the mover, which takes one at a time. With more, all
// renames of the run wait.
const maxWaitingRenames = 1024

// newRenamer prepares for the overlays of a run. Its threads are there when it returns, since later the run's limits could
// forbid to make them.
func newRenamer() (*renamer, error) {
	r := &renamer{
		devices: make(map[uint64]bool),
		start:   make(chan listener),
		todo:    make(chan notification, maxWaitingRenames),
		mover:   mover{calls: realCalls},
	}
	ready := make(chan error)
	for _, work := range []func(listener){r.receive, r.move} {
		go func() {
			runtime.LockOSThread() // for dropRights, and never unlocked
			ready <- dropRights()
			if l, ok := <-r.start; ok {
				work(l)
			}
		}()
	}
	if err := errors.Join(<-ready, <-ready); err != nil {
		return nil, setupError("drop rights", "", err)
	}
	return r, nil
}

// serve has r rename on the overlays among steps, which are built. Where there are none, nil is returned, and the
// threads stay where they are: init's threads are counted.
func (r *renamer) serve(steps []step) (*renamer, error) {
	for _, st := range steps {
		if st.Do != doOverlay {
			continue
		}
		var stat unix.Stat_t
		if err := unix.Stat(string(st.Target), &stat); err != nil {
			return nil, setupError("look at", string(st.Target), err)
		}
		r.devices[uint64(stat.Dev)] = true
	}
	if len(r.devices) == 0 {
		return nil, nil
	}
	return r, nil
}

// stop waits for the call that is being carried out, and prevents another. It reports whether one was
// neither finished nor undone: then the workspace holds a half of each. No process of the run may be left.
func (r *renamer) stop() (torn bool) {
	if r == nil {
		return false
	}
	r.mu.Lock() // and never unlocked
	return r.mover.torn
}

// receive hands the renames of directories to the mover.
func (r *renamer) receive(l listener) {
	var memory pathReader
	restricted := false
	for {
		n, err := l.receive()
		if errors.Is(err, errNoCallers) {
			select {} // all of the run has ended; the thread stays, since to end it would take time
		}
		if err != nil {
			os.Exit(1) // nobody would answer any more: the run must not hang, and doesn't land
		}
		name := notifiedName(n)
		if name == "landlock_restrict_self" {
			// From here on some process may have fewer rights than the mover, and no one can tell which:
			// it inherits them, and the kernel doesn't show them.
			restricted = true
		}
		if !restricted && r.wants(&memory, name, n) {
			r.todo <- n
			continue
		}
		l.letPass(n.id)
	}
}

// wants reports whether a call renames a directory of an overlay, or links a file of one. It decides only who
// carries the call out, so that it doesn't matter that the payload may change the path at once.
func (r *renamer) wants(memory *pathReader, name string, n notification) bool {
	c, ok := renameCallOf(name, n.args)
	if !ok || !c.link && c.flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0 {
		return false
	}
	old, err := memory.read(n.tid, c.old.address)
	if err != nil {
		return false
	}
	if c.link {
		return c.flags == 0 && c.old.isFile(n.tid, old, r.devices)
	}
	if c.old.isDir(n.tid, old, r.devices) {
		return true
	}
	if c.flags&unix.RENAME_EXCHANGE == 0 {
		return false
	}
	other, err := memory.read(n.tid, c.new.address)
	return err == nil && c.new.isDir(n.tid, other, r.devices)
}

// move carries out one call after the other.
func (r *renamer) move(l listener) {
	var memory pathReader
	for n := range r.todo {
		r.mu.Lock()
		r.carryOut(l, &memory, n)
		r.mu.Unlock()
	}
}

// carryOut answers one call. What the kernel would refuse before it looks at the files themselves, it
// shall refuse: such a call passes.
func (r *renamer) carryOut(l listener, memory *pathReader, n notification) {
	c, _ := renameCallOf(notifiedName(n), n.args)
	old, err := c.old.resolve(memory, n.tid)
	if err != nil {
		l.letPass(n.id)
		return
	}
	defer unix.Close(old.dir)
	other, err := c.new.resolve(memory, n.tid)
	if err != nil {
		l.letPass(n.id)
		return
	}
	defer unix.Close(other.dir)
	if !l.valid(n.id) {
		return
	}
	if c.link {
		l.answer(n.id, r.mover.link(old, other))
		return
	}
	l.answer(n.id, r.rename(old, other, uint(c.flags)))
}

// resolve reads a path and opens where it leads.
func (p pathArgument) resolve(memory *pathReader, tid uint32) (entry, error) {
	path, err := memory.read(tid, p.address)
	if err != nil {
		return entry{}, err
	}
	return p.open(tid, path)
}

// rename is renameat2, and works for directories of the lower layer as well. Nearly every rule of
// rename(2) is the kernel's own check: it makes them all before it asks the overlay, which says EXDEV.
func (r *renamer) rename(old, other entry, flags uint) unix.Errno {
	err := r.mover.calls.rename(old, other, flags)
	if err != unix.EXDEV || !r.sameOverlay(old.dir, other.dir) {
		return errnoOf(err)
	}
	sides := []entry{old}
	if flags&unix.RENAME_EXCHANGE != 0 {
		sides = append(sides, other)
	} else if r.mover.isFilled(other) {
		return unix.ENOTEMPTY // the one rule that an overlay knows better than the kernel above it
	}
	for _, side := range sides {
		if err := r.mover.detach(side); err != nil && err != unix.ENOTDIR {
			return refusal(err)
		}
		if err = r.mover.calls.rename(old, other, flags); err != unix.EXDEV {
			return errnoOf(err)
		}
	}
	return unix.EXDEV
}

// sameOverlay reports whether two directories are seen through one mount of one overlay. Between mounts,
// EXDEV is what a plain filesystem says too.
func (r *renamer) sameOverlay(a, b int) bool {
	var x, y unix.Statx_t
	for fd, st := range map[int]*unix.Statx_t{a: &x, b: &y} {
		if unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, st) != nil || st.Mask&unix.STATX_MNT_ID == 0 {
			return false
		}
	}
	return x.Mnt_id == y.Mnt_id && r.devices[unix.Mkdev(x.Dev_major, x.Dev_minor)]
}

// refusal is what a caller is told of a directory that could not be detached. Mostly that is EXDEV, as the
// kernel said: the caller may copy instead. Where that would fail too, it is told why.
func refusal(err error) unix.Errno {
	switch errno := errnoOf(err); errno {
	case unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.ENOMEM, unix.EROFS, unix.ENOENT:
		return errno
	}
	return unix.EXDEV
}
