package sandbox

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// spareThreads is how many idle threads init keeps for what the Go runtime may still come to want, and
// how many more it may have than that without taking one of the payload's.
const spareThreads = 3

// The scores make the kernel prefer the processes of a run to init and to the rest of the host when memory is
// short. They are in oom_score_adj's units: thousandths of the memory. Where no cgroup holds the memory of a
// run it goes before everything else. A payload can lower its own score to the server's again, so that
// this decides among those that mean no harm.
const (
	payloadOOMScore = "500"
	unheldOOMScore  = "1000"
)

// startPayload drops the rights of the calling thread, which the caller has locked, and executes the
// command from it. The status is not nil if the command could not be executed: the sandbox stood, and
// there is nothing to wait for. renames and wall may be nil. From the fork on looks watches.
func startPayload(c *config, renames *renamer, wall *wall, looks *watch) (pid int, _ *status, err error) {
	score, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
	if err != nil {
		return 0, nil, setupError("open", "/proc/self/oom_score_adj", err)
	}
	defer score.Close()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0, nil, setupError("count threads in", "/proc/self/task", err)
	}

	initTasks := len(tasks) + spareThreads
	if err := setRlimits(c.Limits, initTasks); err != nil {
		return 0, nil, setupError("limit resources", "", err)
	}
	shareProcessors(c.Limits.CPU)
	if err := renames.dropRightsAndListen(wall); err != nil {
		return 0, nil, setupError("drop rights", "", err)
	}
	// From here on the payload's own rights decide what it may enter and execute.
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
	wanted := payloadOOMScore
	if c.Limits.Memory > 0 {
		wanted = unheldOOMScore
	}
	restore := adjustScore(score, wanted)
	pid, err = syscall.ForkExec(file, argv, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{inputFD, outputFD, outputFD},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	restore()
	if err != nil {
		return 0, notExecuted(err), nil
	}
	go niceSession(pid)
	if c.Limits.Processes > 0 {
		looks.begin(c.Limits.Processes + initTasks)
	} else {
		looks.begin(0)
	}
	// The payload's ends of the pipes are the payload's alone now: it sees the end of its input, and
	// whoever reads a pipe that it closed gets told.
	unix.Close(inputFD)
	unix.Close(outputFD)
	return pid, nil, nil
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
