package sandbox

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// setRlimits sets the resource limits that the run inherits from init: open files of a process, no core
// dumps, half of the signals that may be pending for a user, and the number of processes and threads, to which initTasks
// is added for init's own.
//
// RLIMIT_NPROC counts the tasks of one uid inside one user namespace (since Linux 5.14), so that what the
// user runs on the host does not count. Two things to know about it:
//
//   - a task that is uid 0 on the host is not bound by it, so a cgroup must hold the limit there;
//   - the kernel asks it before the cgroup. Where a cgroup holds the limit, pass Processes 0, else the
//     cgroup never sees the refused fork and has no event to report.
//
// A limit above the hard limit that the server itself has cannot be had and is cut to that.
//
// It goes through unix.Setrlimit, which tells the Go runtime; with the bare system call, fork would
// give the payload the limit of open files that init was started with.
func setRlimits(l Limits, initTasks int) error {
	if err := setRlimit("core", unix.RLIMIT_CORE, coreLimit); err != nil {
		return err
	}
	if err := halveSignals(); err != nil {
		return err
	}
	if l.Files > 0 {
		if err := setRlimit("nofile", unix.RLIMIT_NOFILE, uint64(l.Files)); err != nil {
			return err
		}
	}
	if l.Processes > 0 {
		return setRlimit("nproc", unix.RLIMIT_NPROC, uint64(l.Processes+initTasks))
	}
	return nil
}

// halveSignals leaves the user on the host something to send: what a run has queued counts there too, and one that may
// queue all would have sigqueue(3) fail for every other program of the user.
func halveSignals() error {
	var have unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_SIGPENDING, &have); err != nil {
		return fmt.Errorf("get rlimit sigpending: %w", err)
	}
	return setRlimit("sigpending", unix.RLIMIT_SIGPENDING, have.Max/2)
}

func setRlimit(name string, resource int, value uint64) error {
	var old unix.Rlimit
	if err := unix.Getrlimit(resource, &old); err != nil {
		return fmt.Errorf("get rlimit %s: %w", name, err)
	}
	value = min(value, old.Max)
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
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
