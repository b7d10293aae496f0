package sandbox

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// spareThreads is how many idle threads init keeps for what the Go runtime may still come to want, and
// how many more it may have than that without taking one of the payload's: one for each that works at once (see leaveMonitor), and for the two
// that may wait in the kernel meanwhile, on a notification and on the server's end.
const spareThreads = workProcessors + 2

// The scores make the kernel prefer the processes of a run to init and to the rest of the host when memory is
// short. They are in oom_score_adj's units: thousandths of the memory. Where no cgroup holds the memory of a
// run it goes before everything else. A payload can lower its own score to the server's again, so that
// this decides among those that mean no harm.
const (
	payloadOOMScore = "500"
	unheldOOMScore  = "1000"
)

// launcher is the thread that the payload is forked from. What it may not do any more can't be given back, so that no
// other goroutine may find itself on it. Most of that it gives up before there is a run: the kernel takes half a
// millisecond for a filter of this size. What depends on the run comes with launch.
type launcher struct{ work chan func() }

func newLauncher() (*launcher, error) {
	l := &launcher{work: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		setSlack(usualSlack)   // the payload inherits it
		// Init was put into the run's cgroup before it was told anything: here is the root of what the payload sees.
		if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil && !errors.Is(err, unix.EINVAL) {
			ready <- setupError("create cgroup namespace", "", err)
			return
		}
		ready <- setupError("drop rights", "", dropRightsAhead())
		for f := range l.work {
			f()
		}
	}()
	return l, <-ready
}

// do has the launcher's thread do something.
func (l *launcher) do(f func()) {
	done := make(chan struct{})
	l.work <- func() {
		defer close(done)
		f()
	}
	<-done
}

// launch has the run's command executed: by the shell that was started ahead, if there is one and it can be confined, else by a
// payload of its own.
// The status is not nil if it could not be executed: the sandbox stood, and there is nothing to wait for. threads are
// init's; renames and wall may be nil. From then on the calling thread, which the caller has locked, has no capability.
func (l *launcher) launch(c *config, ahead *startedShell, threads []uint32, renames *renamer, wall *wall) (pid int, st *status, err error) {
	if ahead != nil {
		if !ahead.confine(threads, renames, wall) {
			ahead.end()
		} else if err := ahead.become(c, len(threads)); err != nil {
			return 0, nil, err
		} else {
			pid = ahead.pid
		}
	}
	if pid == 0 {
		if pid, st, err = l.execute(c, threads, renames, wall); pid == 0 {
			return 0, st, err
		}
	}
	// The payload's ends of the pipes are the payload's alone now: it sees the end of its input, and
	// whoever reads a pipe that it closed gets told.
	unix.Close(inputFD)
	unix.Close(outputFD)
	return pid, nil, setupError("drop rights", "", clearCapabilities())
}

// execute limits the run, drops what rights the launcher has left, and executes the command from its thread. It returns as
// launch does.
func (l *launcher) execute(c *config, threads []uint32, renames *renamer, wall *wall) (pid int, st *status, err error) {
	score, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
	if err != nil {
		return 0, nil, setupError("open", "/proc/self/oom_score_adj", err)
	}
	defer score.Close()
	// These are the process's. The launcher's filter refuses some.
	if err := setRlimits(0, c.Limits, len(threads)+spareThreads); err != nil {
		return 0, nil, setupError("limit resources", "", err)
	}
	l.do(func() {
		shareProcessors(0, c.Limits.CPU)
		if err = confine(ownThread{}, wall, renames, scheduling(threads)); err != nil {
			err = setupError("drop rights", "", err)
			return
		}
		pid, st, err = startPayload(c, score)
	})
	return pid, st, err
}

// subject is who can be deprived of the last rights: see confine.
type subject interface {
	// enclose puts it behind the wall, if there is one: see [wall.enclose].
	enclose(w *wall) error

	// installFilter puts it under a filter, which with SECCOMP_FILTER_FLAG_NEW_LISTENER has a listener that is this process's.
	installFilter(rules []rule, flags uintptr) (listener int, err error)
}

// ownThread is the calling thread.
type ownThread struct{}

func (ownThread) enclose(w *wall) error { return w.enclose() }

func (ownThread) installFilter(rules []rule, flags uintptr) (int, error) {
	return installFilter(rules, flags)
}

// confine takes from who what dropRightsAhead has left it: w encloses it, rules become its second filter, and
// its renames go to r. w and r may be nil. After an error r still waits, for whoever is tried next.
func confine(who subject, w *wall, r *renamer, rules []rule) error {
	if err := who.enclose(w); err != nil {
		return err
	}
	if r == nil {
		_, err := who.installFilter(rules, 0)
		return err
	}
	l, ok, err := installListener(notified, rules, who.installFilter)
	if err != nil {
		return err // another may be confined in its place, and have r
	}
	if !ok {
		close(r.start)
		return nil
	}
	r.start <- l
	r.start <- l
	return nil
}

// startPayload executes the command, from a thread that has no rights but the payload's. score is init's oom_score_adj.
func startPayload(c *config, score *os.File) (pid int, _ *status, err error) {
	// The payload's own rights decide what it may enter and execute.
	if err := unix.Chdir(string(c.Dir)); err != nil {
		return 0, nil, setupError(OpEnterDir, string(c.Dir), err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 0, nil, setupError("make init untraceable", "", err)
	}

	argv, env := fromWire(c.Argv), fromWire(c.Env)
	file, err := lookPath(argv[0], env)
	if err != nil {
		return 0, notExecuted(err), nil
	}
	restore := adjustScore(score, oomScore(c.Limits))
	pid, err = syscall.ForkExec(file, argv, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{inputFD, outputFD, outputFD},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	restore()
	if err != nil {
		return 0, notExecuted(err), nil
	}
	return pid, nil, nil
}

// oomScore is the payload's.
func oomScore(l Limits) string {
	if l.Memory > 0 {
		return unheldOOMScore
	}
	return payloadOOMScore
}

// adjustScore sets the score that the payload will inherit, and returns what puts init's own back. That
// the score can't be set is no reason not to run.
func adjustScore(score *os.File, wanted string) (restore func()) {
	own := make([]byte, 16)
	n, err := score.ReadAt(own, 0)
	if err != nil && n == 0 {
		return func() {}
	}
	_, _ = score.WriteAt([]byte(wanted), 0)
	return func() { _, _ = score.WriteAt(own[:n], 0) }
}

// notExecuted is the status that a shell would report for a command it can't execute.
func notExecuted(err error) *status {
	st := &status{Code: 126, StartError: err.Error()}
	if err == syscall.ENOENT { //nolint:errorlint // never wrapped here
		st.Code = 127
	}
	return st
}
