package sandbox

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// setRlimits sets the resource limits of a process, or with pid 0 those that the run inherits from this one: open files of
// a process, no core dumps, half of the signals that may be pending for a user, and the number of processes and threads, to
// which initTasks is added for init's own.
//
// RLIMIT_NPROC counts the tasks of one uid inside one user namespace (since Linux 5.14), so that what the
// user runs on the host does not count. Two things to know about it:
//
//   - a task that is uid 0 on the host is not bound by it, so a cgroup must hold the limit there;
//   - the kernel asks it before the cgroup. Where a cgroup holds the limit, pass Processes 0, else the
//     cgroup never sees the refused fork and has no event to report.
//
// A limit above the hard limit that the process has cannot be had and is cut to that.
func setRlimits(pid int, l Limits, initTasks int) error {
	if err := setRlimit(pid, "core", unix.RLIMIT_CORE, coreLimit); err != nil {
		return err
	}
	if err := halveSignals(pid); err != nil {
		return err
	}
	if l.Files > 0 {
		if err := setRlimit(pid, "nofile", unix.RLIMIT_NOFILE, uint64(l.Files)); err != nil {
			return err
		}
	}
	if l.Processes > 0 {
		return setRlimit(pid, "nproc", unix.RLIMIT_NPROC, uint64(l.Processes+initTasks))
	}
	return nil
}

// halveSignals leaves the user on the host something to send: what a run has queued counts there too, and one that may
// queue all would have sigqueue(3) fail for every other program of the user.
func halveSignals(pid int) error {
	var have unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_SIGPENDING, nil, &have); err != nil {
		return fmt.Errorf("get rlimit sigpending: %w", err)
	}
	return setRlimit(pid, "sigpending", unix.RLIMIT_SIGPENDING, have.Max/2)
}

func setRlimit(pid int, name string, resource int, value uint64) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &old); err != nil {
		return fmt.Errorf("get rlimit %s: %w", name, err)
	}
	value = min(value, old.Max)
	limit := &unix.Rlimit{Cur: value, Max: value}
	set := func() error { return unix.Prlimit(pid, resource, limit, nil) }
	if pid == 0 {
		// It tells the Go runtime; with the bare system call, fork would give the payload the limit of open files that init was
		// started with.
		set = func() error { return unix.Setrlimit(resource, limit) }
	}
	if err := set(); err != nil {
		return fmt.Errorf("set rlimit %s to %d: %w", name, value, err)
	}
	return nil
}

// reserveThreads makes the Go runtime start n threads now and keep them idle. Init calls it before the
// payload starts: when a run is at its process limit, init's own attempt to make a thread would fail as
// well, and the runtime takes that for fatal.
func reserveThreads(n int) {
	var busy, done sync.WaitGroup
	release := make(chan struct{})
	for range n {
		busy.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread() // unlocked before it ends: the thread goes to the idle list
			busy.Done()
			<-release
		})
	}
	busy.Wait()
	close(release)
	done.Wait()
}
