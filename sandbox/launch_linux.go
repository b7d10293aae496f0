package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"airlock/internal/procfile"
)

const opNamespaces = "create namespaces"

// namespaces are made at the clone. The cgroup namespace is not among them: its root is the cgroup that
// its maker is in, so that init makes it after it was put into the run's.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// launch takes a spare, or makes a sandbox as one is made, gives it the run and returns when the payload runs.
func (n *Native) launch(ctx context.Context, spec Spec, stdio Stdio) (_ Process, err error) {
	n.reserve.enter()
	began := false
	defer func() {
		if !began {
			n.reserve.left()
		}
	}()
	steps := plan(withoutSockets(spec, procfile.Read))
	recipe, own := recipeOf(spec, steps)
	s, left := n.reserve.take(ctx, recipe, steps)
	if s != nil {
		own = left
	} else {
		if s, err = n.newSpare(ctx, recipe); err != nil && ctx.Err() != nil {
			return killed{}, nil
		} else if err != nil {
			return nil, err
		}
		s.mounts.close()
	}
	p := &process{backend: n, ctx: ctx, group: s.group, init: s.init, pipes: s.pipes}
	p.pipes.keep(stdio.Stdin != nil, spec.Network == NetworkRedirected)
	p.group.begin(spec.Limits)
	p.begin(stdio)
	if err := p.handOver(spec, own, stdio.Attach); err != nil {
		return nil, errors.Join(n.maker.explain(err), p.abort())
	}
	began = true
	return p, nil
}

// startInit starts an init, which waits for its base.
func (n *Native) startInit(uid, gid int) (*pipes, initProcess, error) {
	pipes, init, err := n.tryStartInit(uid, gid)
	if errors.Is(err, errNoStarter) { // killed, or it did not answer within starterTime: the next start has another
		return n.tryStartInit(uid, gid)
	}
	return pipes, init, err
}

func (n *Native) tryStartInit(uid, gid int) (*pipes, initProcess, error) {
	pipes, err := newPipes()
	if err != nil {
		return nil, nil, setupError("create pipes", "", err)
	}
	init, err := n.maker.start(n.exe, Spec{UID: uid, GID: gid}, pipes)
	// At once: while the server holds init's ends too, init's death ends neither the socket nor the output.
	pipes.closeChild()
	if err != nil {
		pipes.closeServer()
		return nil, nil, err
	}
	return pipes, init, nil
}

// namespaceMaker starts init in the namespaces of a run. It is all in which the backends that isolate differ.
type namespaceMaker interface {
	// start starts init with pipes.child as its descriptors. The caller closes those, whatever comes of it.
	start(exe *os.File, spec Spec, pipes *pipes) (initProcess, error)

	// explain adds to an error that init met what this way of making namespaces has to do with it.
	explain(err error) error

	// close ends what start has left behind. No init may live.
	close() error
}

// initProcess is the init of one run, as the server holds it.
type initProcess interface {
	// ready returns when init is in the cgroup, which may be nil, and waits for its base on control. No
	// process of the run has been outside of the cgroup then.
	ready(group *cgroup, control *os.File) error

	// kill kills init, and with it the run. It may be called at any time, by any goroutine.
	kill()

	// wait returns when the namespace is empty, and says how init ended.
	wait() (string, error)
}

// initEnv is the environment of init. It does one thing after another, and what its other threads do, they wait for in the
// kernel: a second processor would only have Go's scheduler look for work there, hundreds of times in a run. That changes once
// a run has gone on for some milliseconds: see leaveMonitor.
var initEnv = []string{"GOMAXPROCS=1"}

// ownBinaryFD is where init is executed from.
const ownBinaryFD = egressFD + 1

// startSealed clones and executes an init in dir. The binary is one of the child's descriptors like all others: what
// the fork moves out of the way of those goes to numbers that are free of them, and of nothing else that is open. To
// execute by the caller's own number for it would fail, now and then, with EACCES, since a pipe was put there.
func startSealed(exe *os.File, dir string, pipes *pipes, spec Spec) (*os.Process, error) {
	return os.StartProcess("/proc/self/fd/"+strconv.Itoa(ownBinaryFD), []string{initName}, &os.ProcAttr{
		Dir:   dir,
		Env:   initEnv,
		Files: append(pipes.child(), exe),
		Sys:   initAttr(spec),
	})
}

// namespacesCanBeMade tries all of the start of an init but its end: the child is sent to a directory that is none, which
// comes after the clone, the mapping of its ids and the taking of its identity, and before the exec.
func namespacesCanBeMade(exe *os.File, spec Spec) bool {
	pipes, err := newPipes()
	if err != nil {
		return false
	}
	defer pipes.closeServer()
	defer pipes.closeChild()
	_, err = startSealed(exe, os.DevNull, pipes, spec)
	return errors.Is(err, unix.ENOTDIR)
}

// initAttr maps one id, the run's, onto itself, and gives init every capability over the namespaces that
// are made with it and over nothing else.
func initAttr(spec Spec) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags:  namespaces,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: spec.UID, HostID: spec.UID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: spec.GID, HostID: spec.GID, Size: 1}},
		Setsid:      true,
	}
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		attr.AmbientCaps = append(attr.AmbientCaps, c)
	}
	if os.Geteuid() == 0 {
		// The groups that root has are not the run's. (An ordinary user can't leave its own, nor can a
		// root of a user namespace that an ordinary user has made.)
		attr.GidMappingsEnableSetgroups = setgroupsAllowed()
		attr.Credential = &syscall.Credential{
			Uid: uint32(spec.UID), Gid: uint32(spec.GID),
			Groups: []uint32{}, NoSetGroups: !attr.GidMappingsEnableSetgroups,
		}
	}
	return attr
}

// setgroupsAllowed is false in a user namespace where setgroups(2) is denied, and then in all below it.
func setgroupsAllowed() bool {
	b, err := os.ReadFile("/proc/self/setgroups")
	return err != nil || strings.TrimSpace(string(b)) != "deny"
}

// hostname is what a run sees as its own.
func hostname(s Spec) string { return cmp.Or(s.Hostname, "airlock") }

// handOver attaches the egress, sends init the config, with the steps that are the run's own, and waits until the
// payload runs.
func (p *process) handOver(spec Spec, own []step, attach func(Sockets) error) error {
	if spec.Network == NetworkRedirected {
		sockets, err := receiveSockets(p.pipes.egress)
		if err != nil {
			return setupError("take over the run's egress", "", err)
		}
		if err := attach(sockets); err != nil {
			return setupError("attach the network", "", err)
		}
	}
	limits := spec.Limits
	if p.group.holds("processes") {
		limits.Processes = 0 // the kernel asks the rlimit first, and the cgroup would have nothing to tell
	}
	if p.group.holds("memory") {
		limits.Memory = 0 // nothing to watch
	}
	if p.group.holds("cpu") {
		limits.CPU = 0
	}
	c := &config{
		Steps:  own,
		Argv:   toWire(spec.Argv),
		Env:    toWire(spec.Env),
		Dir:    wire(spec.Dir),
		Limits: limits,
		Stdin:  p.pipes.input != nil,
	}
	err := send(p.pipes.control, message{Config: c})
	if err != nil && !errors.Is(err, unix.EPIPE) { // if init is gone, reading says more
		return setupError("hand over the config", "", err)
	}
	for {
		m, err := receive(p.pipes.control)
		switch {
		case err != nil && p.ctx.Err() != nil:
			return nil // killed while it started: Wait says so
		case err != nil:
			return setupError("build the sandbox", "", fmt.Errorf("init ended without a word: %w", err))
		case m.Failed != nil:
			return m.Failed.setupError()
		case m.Status != nil:
			p.status = m.Status // the command could not be executed
			return nil
		case m.Started != nil:
			return nil
		}
	}
}

// cloneError names the cause of a failed start of init. There is one number for everything from the clone to the exec,
// so that a refusal is the exec's if the rest can be done: made tries.
func cloneError(err error, made func() bool) error {
	if pe := new(fs.PathError); errors.As(err, &pe) {
		err = pe.Err
	}
	denied := []error{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS, unix.EINVAL, unix.ENOSYS}
	if !slices.ContainsFunc(denied, func(e error) bool { return errors.Is(err, e) }) {
		return &SetupError{Op: "start init", Err: err}
	}
	if made() {
		return &SetupError{
			Op:   "execute init",
			Err:  fmt.Errorf("namespaces can be made, but airlock's own binary can't be executed in them from memory: %w", err),
			Hint: "a security module (SELinux, AppArmor, an endpoint guard) may forbid to execute what is in memory: its log says so, and it must allow that for airlock's binary",
		}
	}
	return &SetupError{
		Op:   opNamespaces,
		Err:  fmt.Errorf("user namespaces are not available: %w", err),
		Hint: namespaceHint(os.ReadFile),
	}
}

// mountOps are what init does by the kernel's mount interface, whose refusal is the host's doing.
var mountOps = []string{opOpenFilesystem, opCreateFilesystem, opMountFilesystem, opCloneMount, opMountAttributes, opAttachMount, opPivot}

// explain adds what the host's settings say about a refusal that init met in its own namespaces.
func explain(err error) error {
	e := new(SetupError)
	if !errors.As(err, &e) || e.Hint != "" {
		return err
	}
	if withoutRights(e) {
		e.Err = fmt.Errorf("user namespaces give no rights here: %w", e.Err)
		e.Hint = namespaceHint(os.ReadFile)
	} else if slices.Contains(mountOps, e.Op) {
		h := host{read: os.ReadFile, privileged: os.Geteuid() == 0}
		if o := h.insideObstacle(insideMounts, errnoOf(e.Err)); o.cause != "" {
			e.Hint = o.cause + "; " + o.mend
		}
	}
	return err
}

// withoutRights reports whether init was refused what it asks for first, a capability over its own namespaces:
// it then has none, although the namespaces could be made.
func withoutRights(e *SetupError) bool {
	refused := errors.Is(e.Err, unix.EPERM) || errors.Is(e.Err, unix.EACCES)
	return refused && (e.Op == opHostName || e.Op == opPrivateMounts)
}
