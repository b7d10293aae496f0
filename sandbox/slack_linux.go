package sandbox

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Each Go program has a thread, its runtime's monitor, which looks every 20 µs at what the others do for as long as they do
// something, and which nothing in the program can reach: it is there before the first line of it. In an init, which does one
// thing after another for some 20 ms and then waits, it finds next to nothing, and was a seventh of what a sandbox costs.
//
// The kernel wakes a thread as much later than asked as its timer slack says (prctl(2), PR_SET_TIMERSLACK), and a
// process has that of the thread that started it, over an exec too. So inits are started from a thread with a large one, which the
// monitor keeps, while those threads of init that measure time, or start something, take the usual one.
const (
	// monitorSlack is what the monitor sleeps by itself where it has found nothing for a while (sysmon in runtime/proc.go):
	// a goroutine waits no longer than it may have to elsewhere for a processor that another holds in a system call.
	monitorSlack = 10 * time.Millisecond
	// usualSlack is the kernel's.
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

// nap sleeps in the calling thread, whose slack decides how much too long, in place of Go's timers, for which it would be
// that of whichever thread waits for them. A signal ends it early.
func nap(d time.Duration) {
	span := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&span, nil)
}
