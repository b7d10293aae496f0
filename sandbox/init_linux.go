package sandbox

import (
	"errors"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The descriptors that init is started with, beside 0 to 2, which are /dev/null.
const (
	controlFD = 3 // the socket to the server
	outputFD  = 4 // write end: the payload's standard output and error
	inputFD   = 5 // read end: the payload's standard input
	egressFD  = 6 // the socket that the run's egress is handed over on, and asked for on, if it has one
)

// What init asks its rights for first.
const (
	opHostName      = "set host name"
	opPrivateMounts = "make mounts private"
)

// initMain is PID 1 of a run. It is trusted, and shares a pid namespace and a uid with a payload that
// is not, so:
//
//   - it ignores every signal that can be sent from inside: see ignoreSignals;
//   - it is not dumpable by the time the payload exists, so that its memory, descriptors and environment
//     can't be opened, and it can't be traced;
//   - it reads nothing that the payload could write;
//   - it exits when the server's end of the socket closes, whatever else goes on, from settleTime after it got the config at the
//     latest, and its end is the end of the namespace.
func initMain() {
	setSlack(usualSlack)   // threads that are created from here on inherit it
	runtime.LockOSThread() // the thread builds the sandbox, and loses its capabilities in launcher.launch
	nameSelf(initName)
	ignoreSignals()

	for _, fd := range []int{controlFD, outputFD, inputFD, egressFD} {
		unix.CloseOnExec(fd)
	}
	control := os.NewFile(controlFD, "control")
	err := greet()
	if err == nil {
		err = run(control)
	}
	if err != nil {
		// If nobody listens any more there is nothing left to do with it.
		_ = send(control, message{Failed: newFailure(err)})
		unix.Exit(1)
	}
	unix.Exit(0) // os.Exit waits for a second first where the race detector is linked in
}

// greet says hello where bubblewrap has executed this init, and lets go of bubblewrap's standard error.
func greet() error {
	if !isWrappedInit(os.Args) {
		return nil
	}
	if err := unix.Dup3(0, 2, 0); err != nil {
		return setupError("close", "standard error", err)
	}
	return setupError("say hello", "", sendHello())
}

func run(control *os.File) error {
	f, err := layFoundation(control)
	if err != nil {
		return err
	}
	if err := send(control, message{Built: &struct{}{}}); err != nil {
		return err
	}
	m, err := receive(control)
	if err != nil {
		return err
	}
	if m.Config == nil {
		return errors.New("hand-off: the second message is not the config")
	}
	time.AfterFunc(settleTime, func() {
		awaitEnd(control)
		unix.Exit(1)
	})
	return f.run(m.Config, control)
}

// foundation is what stands before there is a run.
type foundation struct {
	builder  *builder
	renames  *renamer
	wall     *wall
	watch    *watch
	launcher *launcher
	shell    *startedShell // nil if none was started
	threads  threadList
}

// layFoundation builds what needs no run.
func layFoundation(control *os.File) (f foundation, err error) {
	m, err := receive(control)
	if err != nil {
		return f, err
	}
	if m.Base == nil {
		return f, errors.New("hand-off: the first message is not the base")
	}
	if os.Getpid() != 1 {
		return f, errors.New("bug: init is not the first process of a PID namespace; what it is about to do would be done to the host")
	}
	if err := closeInherited(egressFD); err != nil {
		return f, err
	}
	if err := unix.Sethostname([]byte(m.Base.Hostname)); err != nil {
		return f, setupError(opHostName, "", err)
	}
	if err := raiseLoopback(); err != nil {
		return f, err
	}
	asked := false
	if m.Base.Egress != nil {
		if asked, err = openEgress(*m.Base.Egress); err != nil {
			return f, err
		}
	}
	if asked {
		go openListeners()
	} else {
		unix.Close(egressFD)
	}
	if f.builder, err = newBuilder(m.Base.Steps); err != nil {
		return f, err
	}
	if f.renames, err = newRenamer(); err != nil {
		return f, err
	}
	if f.wall, err = newWall(); err != nil {
		return f, err
	}
	if err := f.wall.add(m.Base.Steps); err != nil {
		return f, err
	}
	if f.watch, err = newWatch(control); err != nil {
		return f, err
	}
	if m.Base.Egress == nil {
		f.watch.routes = openRoutes()
	}
	if f.launcher, err = newLauncher(); err != nil {
		return f, err
	}
	reserveThreads(spareThreads)
	f.shell = f.launcher.startShell(m.Base.Shell, f.wall)
	f.threads.list()
	return f, setupError("drop rights", "", freezeCapabilities())
}

// run builds the rest, starts the payload and reports how it ended.
func (f foundation) run(c *config, control *os.File) error {
	if f.shell != nil && !f.shell.takes(c) {
		f.shell.end()
		f.shell = nil
	}
	if err := f.builder.finish(c.Steps); err != nil {
		return err
	}
	if !c.Stdin {
		if err := emptyInput(); err != nil {
			return setupError("open", os.DevNull, err)
		}
	}
	if err := f.wall.add(c.Steps); err != nil {
		return err
	}
	renames, err := f.renames.serve(c.Steps)
	if err != nil {
		return err
	}
	threads := f.threads.now()
	f.watch.limit(c.Limits, len(threads)+spareThreads)
	pid, st, err := f.launcher.launch(c, f.shell, threads, renames, f.wall)
	if err != nil {
		return err
	}
	if st == nil {
		if err := send(control, message{Started: &struct{}{}}); err != nil {
			return err
		}
		beside := time.AfterFunc(settleTime, func() { f.lookAfter(pid) })
		if !endsWithin(pid, shortRun) {
			leaveMonitor()
		}
		st, err = waitPayload(pid, f.watch)
		beside.Stop()
		if err != nil {
			return err
		}
		st.Torn = renames.stop()
	}
	if err := send(control, message{Status: st}); err != nil {
		return err
	}
	// The server has an answer to give now. A process with ten threads that ends is work for every processor, so that it does
	// that when the server lets go of it.
	awaitEnd(control)
	return nil
}

// settleTime is how long a run has been going before init does anything beside it. Short commands are over by then, and
// would else end while init's one processor is busy.
const settleTime = 10 * time.Millisecond

// lookAfter is what goes on beside a run.
func (f foundation) lookAfter(payload int) {
	f.watch.begin()
	niceSession(payload)
}

// awaitEnd returns when the server has let go of the run, or has ended. It says nothing more.
func awaitEnd(control *os.File) {
	var ignored [64]byte
	for {
		if _, err := control.Read(ignored[:]); err != nil {
			return
		}
	}
}

// raiseLoopback brings up the one interface that the new network namespace has.
func raiseLoopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return setupError("open socket", "", err)
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req); err != nil {
		return setupError("bring up interface", "lo", err)
	}
	// Every port of this namespace is the run's to bind, those below 1024 too: nobody else is on it. Where
	// that can't be said, programs see what an ordinary user sees.
	_ = writeFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0, 0)
	// No byte leaves this loopback, so that there is no congestion to look out for. A new namespace takes over what the host
	// has, and one that paces what it sends (bbr) takes three times the processor here. Every kernel has this one, and lets
	// whoever owns the namespace choose it; without it, transfers are only slower. The setting is for IPv6 as well.
	_ = writeFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte("reno"), 0, 0)
	return nil
}

// emptyInput makes the payload's standard input /dev/null and not a pipe at its end: programs tell them apart. It
// has to be the run's own, which is mounted read-only. By a descriptor of the host's, a run of root's could change the
// mode of the host's node.
func emptyInput() error {
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(null)
	return unix.Dup3(null, inputFD, unix.O_CLOEXEC)
}

// ignoreSignals has the kernel drop every signal before it reaches init. For the first process of a pid namespace it does so
// with those that have no handler; Go has one for each: a SIGSEGV, however it came, would be a crash, and a flood of any of
// them would keep init from its work. What init executes has the default of each then, too. A fault of init's own still ends
// it, since for one the kernel does not ask. SIGURG, by which Go interrupts what does not yield, init does without.
func ignoreSignals() {
	var byDefault [4]uint64             // the kernel's struct sigaction, whose first word is SIG_DFL
	size := unsafe.Sizeof(byDefault[0]) // of a set of signals
	for number := uintptr(1); number <= 64; number++ {
		// EINVAL for the two that never have a handler.
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, uintptr(unsafe.Pointer(&byDefault)), 0, size, 0, 0)
	}
}
