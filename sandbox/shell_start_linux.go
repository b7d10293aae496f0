package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// startedShell is a bash that waits for its command in a sandbox without a run, since to start one takes longer than most
// commands do. The thread that has no rights has started it as it starts payloads, as
//
//	bash -c 'echo …; exit 125;          …'
//
// with BASH_ENV, which such a bash reads first, naming a pipe. In that read it is stopped, with init as its tracer. Once there
// is a run, and what it sees is mounted, init
//
//   - makes some system calls in the shell's place, since nobody can make them for somebody else: they put the wall and the
//     filter around it, as confine does for the thread that forks a payload, and take it to the run's directory;
//   - gives it the run's limits and share of the processors;
//   - writes the run's command over that one, which bash has not looked at yet;
//   - writes into the pipe what makes up for the early start (bash.beginning), and lets go of it.
//
// From there on it is bash -c with that command. What tells it from one that is started now: the time at which it was started,
// the NULs behind its command in /proc/PID/cmdline and at the end of /proc/PID/environ, a SECONDS that was set, and what BASH_ENV
// leaves in any bash, which is a PIPESTATUS and a BASH_ARGC that are not empty.
//
// Nothing hostile runs before init lets go of it: what the shell was started with is the host's and its user's, and no word of it is
// a call's.
type startedShell struct {
	*bash
	pid     int
	pipe    int // both ends
	stopped *stopped

	command uintptr // where the command is in its memory
	hidden  uintptr // where the variable is that names the pipe, and how long that is
	length  int

	descriptors []int // that it holds beside the usual three
}

const (
	// shellPipe is the pipe's place. It goes with the private tmpfs's root.
	shellPipe = scratchPath + "/shell"
	// shellPipeSize is how much it has to hold, in bytes: what a pipe holds.
	shellPipeSize = 64 << 10
	// shellOutput and shellRuleset are where a shell has the run's output and the wall's ruleset.
	shellOutput  = 3
	shellRuleset = 4
	// untaken begins what is in the command's place; spaces follow. No bash comes to it; one that did, having copied it before it read
	// the pipe, would say so. Whoever lists the processes sees it.
	untaken = "echo 'airlock: this shell, which waited for a run, has not taken its command' >&2; exit 125;"
	// shellTime bounds the start of a shell.
	shellTime = time.Second
)

// startShell starts a shell, if one is wanted, and returns when it waits. Where none can be had (no tracing, a shell that
// does not read the pipe), there is none: a run starts its own, and says then what is the matter. The calling thread is the one
// that goes on with it.
func (l *launcher) startShell(wanted *bash, w *wall) *startedShell {
	if wanted == nil {
		return nil
	}
	s := &startedShell{bash: wanted, pipe: -1}
	if err := s.start(l, w); err != nil {
		s.end()
		return nil
	}
	return s
}

func (s *startedShell) start(l *launcher, w *wall) error {
	until := time.Now().Add(shellTime)
	if err := s.makePipe(); err != nil {
		return err
	}
	opened, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(opened)
	if _, err := unix.InotifyAddWatch(opened, shellPipe, unix.IN_OPEN); err != nil {
		return err
	}
	// What it prints now would come twice, if another is started in its place.
	printed, err := unix.MemfdCreate("printed", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(printed)
	placeholder := untaken + strings.Repeat(" ", maxCommand-len(untaken))
	variable := shellVariable + "=" + shellPipe
	if err := s.execute(l, placeholder, variable, uintptr(printed), w); err != nil {
		return err
	}
	if err := awaitOpened(opened, s.pid, until); err != nil {
		return err
	}
	if s.stopped, err = stopInRead(s.pid, until); err != nil {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(printed, &stat); err != nil || stat.Size != 0 {
		return errors.Join(errors.New("it has something to say"), err)
	}
	return s.find(placeholder, variable)
}

// makePipe makes the pipe that the shell reads first.
func (s *startedShell) makePipe() (err error) {
	if err := unix.Mkfifo(shellPipe, 0o600); err != nil {
		return err
	}
	// As long as init has the end to write as well, the shell finds no end of what it reads.
	if s.pipe, err = unix.Open(shellPipe, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	// A user who has many pipes gets small ones (pipe(7), pipe-user-pages-soft). Init would wait for room in it for a shell that
	// waits for init.
	size, err := unix.FcntlInt(uintptr(s.pipe), unix.F_GETPIPE_SZ, 0)
	if err == nil && size < shellPipeSize {
		err = errors.New("the pipe is too small")
	}
	return err
}

// execute has the launcher start the shell, whose output goes to printed.
func (s *startedShell) execute(l *launcher, command, variable string, printed uintptr, w *wall) error {
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(null)
	files := []uintptr{uintptr(null), printed, printed, shellOutput: outputFD}
	s.descriptors = []int{shellOutput}
	if w != nil {
		s.descriptors = append(s.descriptors, shellRuleset)
		files = append(files, uintptr(w.ruleset))
	}
	l.do(func() {
		s.pid, err = syscall.ForkExec(string(s.Path), []string{string(s.Path), "-c", command}, &syscall.ProcAttr{
			Env:   append(fromWire(s.Env), variable),
			Files: files,
			Sys:   &syscall.SysProcAttr{Setsid: true},
		})
	})
	return err
}

// awaitOpened returns when a child opens what is watched.
func awaitOpened(watch, pid int, until time.Time) error {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pidfd)
	for {
		fds := []unix.PollFd{{Fd: int32(watch), Events: unix.POLLIN}, {Fd: int32(pidfd), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, int(max(0, time.Until(until).Milliseconds())))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case fds[0].Revents == 0:
			return errors.New("it does not read " + shellVariable)
		}
		return nil
	}
}

// find notes where the command and the variable are, and makes sure that they are, and that it is the shell itself that has
// them: what is executed as bash may be a script, whose own bash reads the pipe as well.
func (s *startedShell) find(placeholder, variable string) error {
	var wanted, got unix.Stat_t
	err := errors.Join(unix.Stat(string(s.Path), &wanted), unix.Stat(fmt.Sprintf("/proc/%d/exe", s.pid), &got))
	if err != nil || wanted.Dev != got.Dev || wanted.Ino != got.Ino {
		return errors.Join(errors.New("it is another program"), err)
	}
	fields, _, err := statFields(s.pid)
	if err != nil {
		return err
	}
	var at [4]uintptr // the arguments' begin and end, the environment's begin and end: see proc_pid_stat(5)
	if len(fields) < argumentsField+len(at) {
		return errors.New("the kernel does not say where its arguments are")
	}
	for i := range at {
		n, err := strconv.ParseUint(fields[argumentsField+i], 10, 64)
		if err != nil {
			return err
		}
		at[i] = uintptr(n)
	}
	if at[0] == 0 || at[3] <= at[0] { // zeros for who may not know
		return errors.New("the kernel does not say where its arguments are")
	}
	text := make([]byte, at[3]-at[0])
	if err := s.readMemory(at[0], text); err != nil {
		return err
	}
	before := string(s.Path) + "\x00-c\x00"
	hidden := bytes.Index(text, []byte("\x00"+variable+"\x00"))
	if !bytes.HasPrefix(text, []byte(before+placeholder+"\x00")) || hidden < 0 {
		return errors.New("its arguments are not where they should be")
	}
	s.command, s.hidden, s.length = at[0]+uintptr(len(before)), at[0]+uintptr(hidden+1), len(variable)
	return nil
}

// argumentsField is where arg_start is in what statFields gives, whose first is the third.
const argumentsField = 48 - 3

// confine puts the wall w and the filter around the shell, and gives its renames to r; both may be nil. It reports whether
// that could be done. If not, a payload can be started instead.
func (s *startedShell) confine(threads []uint32, r *renamer, w *wall) bool {
	if err := confine(s, w, r, scheduling(threads)); err != nil {
		return false
	}
	w.close()
	return true
}

// become makes the shell, which is confined, c's payload.
func (s *startedShell) become(c *config, initThreads int) error {
	// The payload's own rights decide what it may enter.
	if err := s.enter(string(c.Dir)); err != nil {
		return err
	}
	_ = writeFile(fmt.Sprintf("/proc/%d/oom_score_adj", s.pid), []byte(oomScore(c.Limits)), 0, 0) // no reason not to run: see adjustScore
	shareProcessors(s.pid, c.Limits.CPU)
	if err := setRlimits(s.pid, c.Limits, initThreads+spareThreads); err != nil {
		return setupError("limit resources", "", err)
	}
	command := make([]byte, maxCommand)
	copy(command, c.Argv[2])
	if err := errors.Join(s.writeMemory(s.command, command), s.writeMemory(s.hidden, make([]byte, s.length))); err != nil {
		return setupError("write", "the command", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return setupError("make init untraceable", "", err)
	}
	if _, err := unix.Write(s.pipe, []byte(s.beginning(c, s.descriptors))); err != nil {
		return setupError("write", "the shell's beginning", err)
	}
	unix.Close(s.pipe)
	return setupError("let go of", string(s.Path), s.stopped.release())
}

// enter has the shell change its directory. The path goes to where the command will be. What is the matter with the shell
// is not told as a matter of the directory.
func (s *startedShell) enter(dir string) error {
	if len(dir) >= unix.PathMax {
		return setupError(OpEnterDir, dir, unix.ENAMETOOLONG)
	}
	if err := s.writeMemory(s.command, append([]byte(dir), 0)); err != nil {
		return setupError("write", "the directory", err)
	}
	s.stopped.patient = true // the directory's server may be far away, or gone
	defer func() { s.stopped.patient = false }()
	_, err := s.stopped.call(unix.SYS_CHDIR, s.command)
	if _, ofCall := err.(unix.Errno); ofCall { //nolint:errorlint // of those that are wrapped the tracer is the cause
		return setupError(OpEnterDir, dir, err)
	}
	return setupError("change the directory of", string(s.Path), err)
}

// enclose implements [subject].
func (s *startedShell) enclose(w *wall) error {
	if w == nil {
		return nil
	}
	_, err := s.stopped.call(unix.SYS_LANDLOCK_RESTRICT_SELF, shellRuleset, 0)
	return err
}

// installFilter implements [subject]. The program goes to where the command will be.
func (s *startedShell) installFilter(rules []rule, flags uintptr) (fd int, err error) {
	program, err := assembleHere(rules)
	if err != nil {
		return -1, err
	}
	const aligned = 8
	at := (s.command + aligned - 1) &^ (aligned - 1)
	// The pointer is an address of the shell's.
	head := struct {
		length  uint16
		program uintptr
	}{uint16(len(program)), at + unsafe.Sizeof(unix.SockFprog{})}
	text := slices.Concat(bytesOf(&head, 1), bytesOf(&program[0], len(program)))
	if len(text)+aligned > maxCommand {
		return -1, errors.New("the filter is too long for the shell")
	}
	if err := s.writeMemory(at, text); err != nil {
		return -1, err
	}
	n, err := s.stopped.call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, at)
	if err != nil || flags&unix.SECCOMP_FILTER_FLAG_NEW_LISTENER == 0 {
		return -1, err
	}
	s.descriptors = append(s.descriptors, int(n))
	pidfd, err := unix.PidfdOpen(s.pid, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(pidfd)
	return unix.PidfdGetfd(pidfd, int(n), 0)
}

// bytesOf gives n things as they are in memory.
func bytesOf[T any](first *T, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(first)), n*int(unsafe.Sizeof(*first)))
}

// readMemory reads what the shell has at an address.
func (s *startedShell) readMemory(at uintptr, to []byte) error {
	return s.copyMemory(unix.ProcessVMReadv, at, to)
}

// writeMemory is the other way.
func (s *startedShell) writeMemory(at uintptr, from []byte) error {
	return s.copyMemory(unix.ProcessVMWritev, at, from)
}

func (s *startedShell) copyMemory(by func(int, []unix.Iovec, []unix.RemoteIovec, uint) (int, error), at uintptr, with []byte) error {
	local := []unix.Iovec{{Base: &with[0]}}
	local[0].SetLen(len(with))
	n, err := by(s.pid, local, []unix.RemoteIovec{{Base: at, Len: len(with)}}, 0)
	if err == nil && n != len(with) {
		err = unix.EFAULT
	}
	return err
}

// end ends a shell that became nothing, if there is one.
func (s *startedShell) end() {
	if s == nil {
		return
	}
	if s.pipe >= 0 {
		unix.Close(s.pipe)
	}
	if s.pid == 0 {
		return
	}
	_ = unix.Kill(-s.pid, unix.SIGKILL) // with what it may have started, if it is none
	for {
		// A stop may be told of first.
		var ws unix.WaitStatus
		_, err := unix.Wait4(s.pid, &ws, unix.WALL, nil)
		if err != nil && !errors.Is(err, unix.EINTR) || err == nil && !ws.Stopped() {
			return
		}
	}
}
