package sandbox

import (
	"context"
	"errors"
	"maps"
	"os"
	"sync"
)

// Native is the backend that builds sandboxes itself, out of namespaces, mounts, cgroups, rlimits and
// a seccomp filter. It needs nothing that is installed; it needs user namespaces. Make one with
// [NewNative].
type Native struct {
	exe   *os.File                 // the sealed binary
	maker namespaceMaker           // who makes the namespaces of a run
	held  func() map[string]string // hostHeld, found out once: it takes a cgroup to know

	newGroup func(id string, limits Limits) (*cgroup, error)
	reserve  reserve

	mu      sync.Mutex
	janitor *janitor    // started before the first cgroup is made
	first   *firstBlank // nil if there is none, or none any more
}

// NewNative prepares the backend. The same binary is executed again, as init, starter and janitor
// (roles_linux.go).
func NewNative() (*Native, error) {
	s := new(starter)
	go s.beginAhead()
	n, err := newIsolating(s)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return n, nil
}

func newIsolating(maker namespaceMaker) (*Native, error) {
	exe, err := sealedSelf()
	if err != nil {
		return nil, err
	}
	// What a killed server has left is not this one's to fail for.
	_ = cleanStaleCgroups()
	n := &Native{exe: exe, maker: maker, held: sync.OnceValue(hostHeld)}
	n.newGroup = n.cgroup
	n.reserve.start = n.newSpare
	return n, nil
}

// Name implements [Backend].
func (*Native) Name() string { return "native" }

// Unconfined implements [Backend].
func (*Native) Unconfined() bool { return false }

// Held implements [Backend].
func (n *Native) Held() map[string]string { return maps.Clone(n.held()) }

// hostHeld says what holds each limit of a run of the server's own uid on this host.
func hostHeld() map[string]string {
	held := map[string]string{"processes": "", "memory": Watched, "cpu": Affinity, "files": "rlimit", "disk": Watched}
	for limit, by := range cgroupHeld(Limits{}) {
		if by != "" {
			held[limit] = by
		}
	}
	if held["processes"] == "" && boundByRlimit() {
		held["processes"] = "rlimit"
	}
	return held
}

// Start implements [Backend].
func (n *Native) Start(ctx context.Context, spec Spec, stdio Stdio) (Process, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if spec.Network != NetworkNone && (spec.Network != NetworkRedirected || stdio.Attach == nil) {
		return nil, &SetupError{Op: "attach the network", Err: errors.New("a sandbox has no network " + string(spec.Network))}
	}
	if euid := os.Geteuid(); euid != 0 && (spec.UID != euid || spec.GID != os.Getegid()) {
		return nil, &SetupError{Op: "take the run's identity", Err: errors.New("only a server that is root can give a run another uid or gid than its own")}
	}
	if err := n.mustHold(spec); err != nil {
		return nil, err
	}
	return n.launch(ctx, spec, stdio)
}

// cgroup makes a cgroup with these limits; nil where none can be had.
func (n *Native) cgroup(id string, limits Limits) (*cgroup, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	// First the janitor, so that there is no moment at which a cgroup stands that nobody would remove.
	if n.janitor == nil && len(wantedControllers(limits)) > 0 {
		var err error
		if n.janitor, err = startJanitor(n.exe); err != nil {
			return nil, err
		}
	}
	return newCgroup(id, limits)
}

// mustHold refuses a run whose limits are not held by the kernel: each of them if Strict is set, and
// always the number of processes of one with the server's own uid, where that is root of the host and has no cgroup:
// nothing else would stop it from exhausting the host. (Another uid that a root gives a run is bound by RLIMIT_NPROC.)
func (n *Native) mustHold(spec Spec) error {
	l := spec.Limits
	for _, limit := range []struct {
		name string
		set  bool
		must bool
	}{
		{"processes", l.Processes > 0, l.Strict || spec.UID == os.Geteuid()},
		{"memory", l.Memory > 0, l.Strict},
		{"cpu", l.CPU > 0, l.Strict},
	} {
		if limit.set && limit.must && !IsHeld(n.held()[limit.name]) {
			hint := host{read: os.ReadFile, privileged: os.Geteuid() == 0}.cgroupMend()
			if l.Strict {
				hint += `; or set limits.enforce = "best" to run without what can't be held`
			}
			if spec.UID == os.Geteuid() && limit.name == "processes" {
				hint = "run airlock as an ordinary user (this one seems to be root of the host, whom RLIMIT_NPROC does not bind); or " + hint
			}
			return &SetupError{
				Op:   "hold limit",
				Path: limit.name,
				Err:  errors.New("no kernel mechanism on this host holds it"),
				Hint: hint,
			}
		}
	}
	return nil
}

// Close implements [Backend].
func (n *Native) Close() error {
	n.reserve.close()
	n.discardFirst()
	n.mu.Lock()
	defer n.mu.Unlock()
	// The janitor comes last: a cgroup that the server had moved to is left when nobody else is in it.
	err := errors.Join(n.maker.close(), n.janitor.close())
	n.janitor = nil
	return err
}
