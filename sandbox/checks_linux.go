package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Checks tries each thing that the native backend needs on this host, and looks for the cause of what
// does not work. Everything is found by trying; settings are read only to name what is in the way. It
// takes some tens of milliseconds, leaves nothing behind, and gives up on what ctx ends.
func Checks(ctx context.Context) []Check {
	defer leaveLeafAsFound()()
	h := host{read: os.ReadFile, privileged: os.Geteuid() == 0}
	checks := []Check{checkKernel()}
	namespaces := checkNamespaces(ctx, h)
	checks = append(checks, namespaces)
	if namespaces.OK {
		checks = append(checks, checkInside(ctx, h)...)
	}
	checks = append(checks, checkLandlock())
	checks = append(checks, checkLimits(h)...)
	if c, ok := checkCoreDumps(h); ok {
		checks = append(checks, c)
	}
	if c, ok := checkContainer(h); ok {
		checks = append(checks, c)
	}
	return checks
}

// leaveLeafAsFound returns what puts this process back into its cgroup, if looking for a place for cgroups
// moved it to a leaf in between.
func leaveLeafAsFound() (restore func()) {
	self, err := selfStamp()
	before, err2 := os.ReadFile("/proc/self/cgroup")
	if err != nil || err2 != nil || strings.Contains(string(before), self.leafName()) {
		return func() {}
	}
	return func() { _ = leaveOwnLeaf(self.prefix()) }
}

// checkKernel asks for the system calls that have no substitute. All but ENOSYS means that one is there:
// what is passed makes each of them fail.
func checkKernel() Check {
	c := Check{Name: "kernel", Promise: "a sandbox can be built"}
	const minusOne = ^uintptr(0)
	var missing []string
	for _, call := range []struct {
		name   string
		number uintptr
	}{
		{"fsopen", unix.SYS_FSOPEN},
		{"open_tree", unix.SYS_OPEN_TREE},
		{"move_mount", unix.SYS_MOVE_MOUNT},
		{"mount_setattr", unix.SYS_MOUNT_SETATTR},
		{"openat2", unix.SYS_OPENAT2},
		{"pidfd_open", unix.SYS_PIDFD_OPEN},
	} {
		_, _, errno := unix.Syscall6(call.number, minusOne, 0, minusOne, 0, minusOne, 0)
		if errno == unix.ENOSYS {
			missing = append(missing, call.name)
		}
	}
	var uts unix.Utsname
	_ = unix.Uname(&uts) // can't fail with a valid pointer
	release := "Linux " + unix.ByteSliceToString(uts.Release[:])
	if len(missing) > 0 {
		c.Detail = fmt.Sprintf("%s has no %s here", release, strings.Join(missing, ", "))
		c.Mend = "use Linux 5.14 or later; in a container these calls may be blocked by its seccomp profile (Docker: --security-opt seccomp=unconfined)"
		return c
	}
	c.OK, c.Detail = true, release+" with the mount interface"
	return c
}

// namespaceFlags are the namespaces of a run, with the names of their limits below user.
var namespaceFlags = []struct {
	flag uintptr
	name string
}{
	{unix.CLONE_NEWNS, "mnt"},
	{unix.CLONE_NEWPID, "pid"},
	{unix.CLONE_NEWNET, "net"},
	{unix.CLONE_NEWIPC, "ipc"},
	{unix.CLONE_NEWUTS, "uts"},
}

func checkNamespaces(ctx context.Context, h host) Check {
	c := Check{Name: "user namespaces", Promise: "a run sees and changes only what it is given"}
	_, err := inNamespaces(ctx, namespaces, nil)
	if err == nil {
		c.OK, c.Detail = true, "made, with mount, PID, network, IPC and host name namespaces"
		return c
	}
	if _, userErr := inNamespaces(ctx, unix.CLONE_NEWUSER, nil); userErr != nil {
		o := h.namespaceObstacle(userErr)
		c.Detail = fmt.Sprintf("%v: %s", userErr, o.cause)
		c.Mend = o.mend
		return c
	}
	// It is one of the others.
	for _, n := range namespaceFlags {
		if _, err := inNamespaces(ctx, unix.CLONE_NEWUSER|n.flag, nil); err != nil {
			c.Name = n.name + " namespaces"
			c.Detail = err.Error()
			if setting := "user.max_" + n.name + "_namespaces"; h.sysctl(strings.ReplaceAll(setting, ".", "/")) == "0" {
				c.Detail += ": " + setting + " is 0"
				c.Mend = "sudo sysctl " + setting + "=15000"
			}
			return c
		}
	}
	c.Detail = err.Error()
	return c
}

// inside names what is tried in namespaces like those of a run, in this order.
var inside = []struct{ name, promise, detail string }{
	{insideMounts, "a run sees and changes only what it is given", "file systems can be mounted in a user namespace"},
	{insideProc, "a run sees no process but its own", "a new one can be mounted"},
	{insideOverlay, "only a run that ends well changes the workspace", "can be mounted in a user namespace"},
	{insideRights, "a run has no right and gains none", "capabilities are dropped and the seccomp filter holds"},
}

func checkInside(ctx context.Context, h host) []Check {
	dir, err := os.MkdirTemp("", "airlock-check-")
	if err != nil {
		return []Check{{Name: "temporary directory", Promise: "the other checks can be made", Detail: err.Error()}}
	}
	defer removeLayer(dir)
	for _, name := range []string{"lower", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return []Check{{Name: "temporary directory", Promise: "the other checks can be made", Detail: err.Error()}}
		}
	}
	found, err := inNamespaces(ctx, namespaces, &checkOrder{Dir: dir})
	var checks []Check
	for _, want := range inside {
		c := Check{Name: want.name, Promise: want.promise}
		f, tried := found[want.name]
		switch {
		case !tried && err != nil:
			c.Detail = fmt.Sprintf("could not be tried: %v", err)
		case !tried:
			c.Detail = "could not be tried"
		case f.Errno == 0 && f.Text == "":
			c.OK, c.Detail = true, want.detail
		default:
			o := h.insideObstacle(want.name, unix.Errno(f.Errno))
			c.Detail, c.Mend = f.Text, o.mend
			if o.cause != "" {
				c.Detail += ": " + o.cause
			}
		}
		checks = append(checks, c)
	}
	return checks
}

// checkLimits says what holds the limits that no sandbox can do without.
func checkLimits(h host) []Check {
	held := hostHeld()
	var checks []Check
	for _, controller := range []string{controllerPids, controllerMemory} {
		limit := limitOfController[controller]
		c := Check{Name: "limit on " + limit, Promise: "no run can exhaust the host's " + limit, OK: IsHeld(held[limit])}
		switch held[limit] {
		case "", Watched:
			c.Detail = "no kernel mechanism holds it"
			if held[limit] == Watched {
				c.Detail += "; it is watched, and a run that is beyond it is ended"
			}
			if _, why := findHierarchies([]string{controller}); why != nil {
				c.Detail += ": " + strings.ReplaceAll(why.Error(), "\n", "; ")
			}
			c.Mend = h.cgroupMend()
		case "rlimit":
			c.Detail = "held by RLIMIT_NPROC, which counts inside the run's user namespace"
		default:
			c.Detail = "held by " + held[limit]
		}
		checks = append(checks, c)
	}
	return checks
}

// checkLandlock asks for the second wall.
func checkLandlock() Check {
	c := Check{Name: "Landlock", Promise: "a second wall stands where the mounts should have a hole; nothing that is promised rests on it alone"}
	switch abi := landlockABI(); {
	case abi >= minLandlock:
		c.OK, c.Detail = true, fmt.Sprintf("version %d, a second wall behind the mounts", abi)
		if abi < 9 {
			c.Detail += "; sockets in directories that sandbox.read shows are masked one by one, as of a run's start (the kernel keeps them all since 7.1)"
		}
	case abi > 0:
		c.Detail = fmt.Sprintf("version %d, which allows no rename between directories, so that it can't be used", abi)
		c.Mend = "use Linux 5.19 or later"
	default:
		c.Detail = "this kernel has none, or it is not among those that are on"
		c.Mend = "use Linux 5.19 or later, with landlock in the kernel's parameter lsm="
	}
	return c
}

func checkContainer(h host) (Check, bool) {
	kind, evidence := h.container()
	if kind == "" {
		return Check{}, false
	}
	return Check{
		Name:    "container",
		Promise: "what holds here holds on the host",
		OK:      true,
		Detail: fmt.Sprintf("this is inside %s (%s): the runtime's own restrictions decide what the checks above find, "+
			"a run is isolated from this container, and the container's limits bound all runs together", kind, evidence),
	}, true
}

// errnoOf is the errno in a chain; 0 if there is none.
func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	_ = errors.As(err, &errno) // 0 is the answer then
	return errno
}
