package sandbox

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Most of what a run takes, if its command takes little, is the start of init: the clone of the namespaces, the
// exec, and the start of Go's runtime. So an init is started ahead and waits in its namespaces for its config,
// which is all that it ever learns of a run. It was of no run before, and is of none after.
//
// Two things are fixed at its start: its identity, and the mounts of the host that its namespace copied. One that
// has another identity than the run, or was started before the host's mounts changed, is thrown away.

// spare is an init that waits for a run.
type spare struct {
	uid, gid int
	init     initProcess
	pipes    *pipes
	mounts   *os.File // becomes readable as the host's mounts change
}

// reserve keeps one spare, once it is told to.
type reserve struct {
	start func(uid, gid int) (*spare, error)

	mu       sync.Mutex
	have     *spare
	starting sync.WaitGroup
	busy     bool // one is being started
	closed   bool
}

// fill starts a spare, unless there is one. It returns at once.
func (r *reserve) fill(uid, gid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.have != nil || r.busy || r.closed {
		return
	}
	r.busy = true
	r.starting.Go(func() {
		// Without a spare a run starts its own init, and says why it can't.
		s, err := r.start(uid, gid)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.busy = false
		if err != nil {
			return
		}
		if r.closed {
			s.discard()
			return
		}
		r.have = s
	})
}

// take returns the spare if it is fit for a run of this identity, else nil.
func (r *reserve) take(uid, gid int) *spare {
	r.starting.Wait() // a start that goes on is nearer to its end than one that begins now
	r.mu.Lock()
	s := r.have
	r.have = nil
	r.mu.Unlock()
	if s == nil {
		return nil
	}
	if s.uid != uid || s.gid != gid || !s.fresh() {
		s.discard()
		return nil
	}
	s.mounts.Close()
	return s
}

// fresh reports whether init lives and sees the mounts that the host has now.
func (s *spare) fresh() bool {
	fds := []unix.PollFd{
		{Fd: int32(s.mounts.Fd()), Events: unix.POLLPRI},
		{Fd: fdOf(s.pipes.control), Events: unix.POLLIN}, // init says nothing before it has its config
	}
	n, err := unix.Poll(fds, 0)
	return n == 0 && err == nil
}

// fdOf is a file's descriptor, which stays as non-blocking as it is.
func fdOf(f *os.File) int32 {
	fd := int32(-1)
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(n uintptr) { fd = int32(n) })
	}
	return fd
}

func (s *spare) discard() {
	s.mounts.Close()
	s.init.kill()
	s.pipes.closeServer()
	_, _ = s.init.wait()
}

// close throws the spare away. Nothing is taken or filled any more.
func (r *reserve) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.starting.Wait()
	if r.have != nil {
		r.have.discard()
		r.have = nil
	}
}

// watchMounts opens what tells of changes of the host's mounts from now on.
func watchMounts() (*os.File, error) {
	fd, err := unix.Open("/proc/self/mounts", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/proc/self/mounts", Err: err}
	}
	return os.NewFile(uintptr(fd), "/proc/self/mounts"), nil
}

// newSpare starts an init ahead.
func (n *Native) newSpare(uid, gid int) (_ *spare, err error) {
	s := &spare{uid: uid, gid: gid}
	if s.mounts, err = watchMounts(); err != nil {
		return nil, err
	}
	if s.pipes, s.init, err = n.startInit(Spec{UID: uid, GID: gid}); err != nil {
		s.mounts.Close()
		return nil, err
	}
	return s, nil
}

// Prepare has the sandbox of the next run with this identity begun ahead, and those of later runs when the one
// before has ended. It returns at once. A backend that can't do so does nothing.
func (n *Native) Prepare(uid, gid int) {
	if _, ok := n.maker.(ownNamespaces); !ok {
		return // bubblewrap must be in the run's cgroup before it begins
	}
	n.prepared.Store(true)
	n.reserve.fill(uid, gid)
}
