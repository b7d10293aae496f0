package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// bubblewrap has bubblewrap make the namespaces. What is said before the hand-off begins (handoff.go):
//
//	server                          bwrap                           init, PID 1 of the new namespaces
//	  │  fork + exec ─────────────▶ │  waits for its arguments
//	  │  puts it into the cgroup    │
//	  │ ── arguments, on a pipe ──▶ │  namespaces, mounts
//	  │                             │  clone + exec ──────────────▶ │
//	  │                             │  lets go of all but 0 to 2    │
//	  │ ◀─ hello: one byte, and init's pidfd, on descriptor 3 ───── │  waits for its config
//	  ┆                             ┆                               ┆
//	  │                             │ ◀──────────────────────────── │  exits; the namespaces are empty
//	  │ ◀─────────────── exits ──── │
//
// The arguments are sent in one write that the pipe takes as a whole, so that a server which dies meanwhile leaves a
// bwrap without any, that does nothing. Bubblewrap's own --die-with-parent is not used: it is PR_SET_PDEATHSIG, and
// goes off when a thread of the server ends. Init watches the server's socket, as always.
//
// The server's child is bwrap, whose end says nothing certain about the namespace: somebody may have killed it. So
// init is killed and waited for by its pidfd, which it sends itself, since any number that names it could come to name
// another process.
type bubblewrap struct{ path string }

// The descriptors that bwrap gets beside those of init, all of which init inherits.
const (
	bubblewrapArgsFD = egressFD + 1
	initBinaryFD     = egressFD + 2
)

// initBinaryPath is how bubblewrap executes the sealed binary, and with it the argv[0] of this init: that can't be
// chosen before bubblewrap 0.9.
var initBinaryPath = "/proc/self/fd/" + strconv.Itoa(initBinaryFD)

// isWrappedInit reports whether argv is that of an init which bubblewrap executed.
func isWrappedInit(argv []string) bool {
	return len(argv) == 2 && argv[0] == initBinaryPath && argv[1] == initName
}

// bubblewrapArgs are bubblewrap's arguments for a run. Root is shown as it is, since init takes from it what the
// plan names. It must see /proc as well, without which the kernel allows no new one.
func bubblewrapArgs(spec Spec) []string {
	return []string{
		"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
		"--uid", strconv.Itoa(spec.UID), "--gid", strconv.Itoa(spec.GID),
		"--cap-add", "ALL",
		"--as-pid-1",
		"--dev-bind", "/", "/",
		"--chdir", "/",
	}
}

// start implements namespaceMaker.
func (b bubblewrap) start(exe *os.File, spec Spec, pipes *pipes) (_ initProcess, err error) {
	if err := b.mustGiveRights(spec); err != nil {
		return nil, err
	}
	arguments := strings.Join(bubblewrapArgs(spec), "\x00") + "\x00"
	w := &wrappedInit{path: b.path, arguments: arguments}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, setupError("create pipes", "", err)
	}
	defer theirs.Close()
	w.pipe = ours
	if w.words, err = memoryFile("words of bubblewrap"); err != nil {
		ours.Close()
		return nil, err
	}
	files := pipes.child()
	files[2] = w.words
	withMonitorSlack(func() {
		w.bwrap, err = os.StartProcess(b.path, []string{"bwrap", "--args", strconv.Itoa(bubblewrapArgsFD), "--", initBinaryPath, initName}, &os.ProcAttr{
			Dir:   "/",
			Env:   initEnv,
			Files: append(files, theirs, exe),
			Sys:   bubblewrapAttr(spec),
		})
	})
	if err != nil {
		closeAll(ours, w.words)
		return nil, &SetupError{Op: "start bubblewrap", Path: b.path, Err: err}
	}
	return w, nil
}

// bubblewrapAttr has bubblewrap run as the run's identity, without the groups that root has, and lead a process
// group in which there is nothing else than init.
func bubblewrapAttr(spec Spec) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{
			Uid: uint32(spec.UID), Gid: uint32(spec.GID),
			Groups: []uint32{}, NoSetGroups: !setgroupsAllowed(),
		}
	}
	return attr
}

// mustGiveRights refuses a bubblewrap that is setuid, which gives capabilities to nobody but root.
func (b bubblewrap) mustGiveRights(spec Spec) error {
	var st unix.Stat_t
	if err := unix.Stat(b.path, &st); err != nil {
		return setupError("find", b.path, err)
	}
	if st.Mode&unix.S_ISUID == 0 || spec.UID == 0 || int(st.Uid) == spec.UID {
		return nil
	}
	return &SetupError{
		Op:   "use bubblewrap",
		Path: b.path,
		Err:  errors.New("it is setuid, and then gives init no rights over its namespaces"),
		Hint: "if this host lets ordinary users make user namespaces: sudo chmod u-s " + b.path + `; else nothing but a server that is root can run commands here. airlock doctor looks closer`,
	}
}

// wrappedInit is an init that bubblewrap executes.
type wrappedInit struct {
	path      string
	bwrap     *os.Process
	arguments string
	pipe      *os.File // write end of what bwrap reads its arguments from
	words     *os.File // what bwrap writes to its standard error; closed by wait

	mu     sync.Mutex
	pidfd  *os.File // init's; nil before it said hello, and after wait
	killed bool
	reaped bool // bwrap's process id may be somebody else's now

	waited sync.Once // what follows is wait's result
	status string
	said   string // words, on one line
	err    error
}

// hello is the byte that comes with init's pidfd.
const hello = 'i'

// ready implements initProcess.
func (w *wrappedInit) ready(group *cgroup, control *os.File) error {
	defer w.pipe.Close()
	if group != nil {
		if err := group.add(w.bwrap.Pid); err != nil {
			return err
		}
	}
	// EPIPE: it is gone, and receiveHello says more.
	if _, err := w.pipe.WriteString(w.arguments); err != nil && !errors.Is(err, unix.EPIPE) {
		return setupError("write bubblewrap's arguments", "", err)
	}
	w.pipe.Close()
	pidfd, err := receiveHello(control)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			w.kill()
		}
		return w.failed(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pidfd = pidfd
	if w.killed {
		_ = killPidfd(w.pidfd)
	}
	return nil
}

// failed is the error for a bubblewrap that did not come to execute init, which was found out by err. What
// bubblewrap said is repeated, not interpreted.
func (w *wrappedInit) failed(err error) error {
	status, waitErr := w.wait()
	said := cmp.Or(w.said, "it said nothing")
	if waitErr != nil || !errors.Is(err, io.EOF) {
		said = errors.Join(err, waitErr).Error()
	}
	return &SetupError{
		Op:   opNamespaces,
		Path: "with " + w.path,
		Err:  fmt.Errorf("bubblewrap did not start init (%s): %s", status, said),
		Hint: w.hint(),
	}
}

// hint names the setting of this host that bubblewrap may have met, if there is one.
func (w *wrappedInit) hint() string {
	if h := (host{read: os.ReadFile, privileged: os.Geteuid() == 0}); h.namespaceObstacle(nil).mend != "" {
		return namespaceHint(h.read)
	}
	return "see what it does by hand: " + w.path + " --unshare-user --dev-bind / / true"
}

// kill implements initProcess. Before init has said hello, it can be bwrap's child or not be there at all; both are
// in one process group, which no process of the run can be in that early.
func (w *wrappedInit) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.killed = true
	if w.pidfd != nil {
		_ = killPidfd(w.pidfd)
		return
	}
	if !w.reaped {
		_ = unix.Kill(-w.bwrap.Pid, unix.SIGKILL)
	}
}

// wait implements initProcess.
func (w *wrappedInit) wait() (string, error) {
	w.waited.Do(func() {
		w.pipe.Close() // a bwrap that still waits for arguments ends now
		w.mu.Lock()
		pidfd := w.pidfd
		w.mu.Unlock()
		if pidfd != nil {
			w.err = waitPidfd(pidfd)
		}
		err := waitChild(w.bwrap.Pid)
		w.mu.Lock()
		defer w.mu.Unlock()
		state, err2 := w.bwrap.Wait()
		w.reaped, w.pidfd = true, nil
		w.status, w.err = fmt.Sprint(state), errors.Join(w.err, err, err2)
		said := make([]byte, 1000)
		n, _ := w.words.ReadAt(said, 0)
		w.said = strings.ToValidUTF8(strings.Join(strings.Fields(string(said[:n])), " "), "?")
		closeAll(pidfd, w.words)
	})
	return w.status, w.err
}
