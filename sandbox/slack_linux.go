package sandbox

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Each Go program has a thread, its runtime's monitor (sysmon), which looks every 20 µs at what the others do for as long as they do
// something, and which nothing in the program can reach: it is there before the program's first line. In an init, which does one
// thing after another for some 20 ms and then waits, it finds next to nothing, and was a seventh of what a sandbox costs.
//
// The kernel may wake a thread later than asked by up to its timer slack (PR_SET_TIMERSLACK(2const)). A new thread or process
// inherits that of the thread that creates it, and keeps it over an exec. So inits are started from a thread with a large one, which
// the monitor keeps, while those threads of init that measure time, or start something, take the usual one.
const (
	// monitorSlack is as long as the monitor itself sleeps at most once it has found nothing for a while (sysmon in runtime/proc.go):
	// a goroutine waits no longer than it may have to elsewhere for a P that another holds in a system call.
	monitorSlack = 10 * time.Millisecond
	// usualSlack is the kernel's own for what is not a real-time thread.
	usualSlack = 50 * time.Microsecond
)

// setSlack gives the calling thread a timer slack. Where the kernel refuses, everything is as it would be without.
func setSlack(d time.Duration) {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d.Nanoseconds()), 0, 0, 0)
}

// withMonitorSlack calls f, which starts an init, on a thread with the slack for it.
func withMonitorSlack(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		before = int(usualSlack.Nanoseconds())
	}
	setSlack(monitorSlack)
	defer setSlack(time.Duration(before))
	f()
}

// workProcessors is how many of init's threads may be at work at once beside a run: the receiver or the watch, the mover, and the main
// thread.
const workProcessors = 3

// shortRun is how long a run may go on before init does without the monitor, which takes half a millisecond: short commands are over
// by then.
const shortRun = 5 * time.Millisecond

// leaveMonitor has the threads of init do without the monitor from now on. A thread keeps its processor, as Go calls it, in a
// system call, and where that waits it is the monitor that takes it away: with one for all, a directory's rename waited 10 to 20 ms from
// the receiver to the mover, and so did the end of a payload that had renamed something, or that ended while the watch slept.
func leaveMonitor() { runtime.GOMAXPROCS(workProcessors) }

// endsWithin waits for the end of a child, or until the time is over, in the calling thread, and reports whether it has ended. Where that
// can't be told it returns false at once.
func endsWithin(pid int, d time.Duration) bool {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(pidfd)
	timeout := unix.NsecToTimespec(d.Nanoseconds())
	n, err := unix.Ppoll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, &timeout, nil)
	return n > 0 && err == nil
}

// nap sleeps in the calling thread, by whose slack it may be late. Of Go's timers some other thread waits for the next one, and
// they are late by the slack of that. A signal ends a nap early.
func nap(d time.Duration) {
	span := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&span, nil)
}
