package sandbox

import "fmt"

// Spec describes one run: what it executes, what it sees and what it may use. It is a plain value
// and says nothing of how it is enforced; a [Backend] starts it. Everything in it is decided by the
// caller: a backend adds only the skeleton that every sandbox has (an empty root, /proc, /dev, and
// one private writable tmpfs that is seen as /tmp, /home, /run, /var/tmp and /dev/shm).
type Spec struct {
	// ID names the run in cgroup and log names: letters, digits and '-' only.
	ID string

	// Argv is the command with its arguments; Argv[0] is an absolute path inside the sandbox or a
	// name that is looked up in the PATH of Env. There is no shell in between.
	Argv []string

	// Env is the whole environment, as KEY=VALUE; nothing of the server's is added.
	Env []string

	// Dir is the working directory: an absolute path inside the sandbox.
	Dir string

	// Hostname is what the run sees as its own host name; "" is "airlock".
	Hostname string

	// Home is the run's home directory, made in the private tmpfs where nothing is mounted there.
	Home string

	// UID and GID are the identity of the run, the same number inside and on the host. A server that
	// is not root can name only its own.
	UID, GID int

	// Mounts are applied in the order of their targets' depth, parents first (see plan.go), after
	// the skeleton.
	Mounts []Mount

	// Limits bound the run.
	Limits Limits

	// Network is what the run reaches, and Egress what [NetworkRedirected] needs.
	Network Network
	Egress  Egress
}

// MountKind says where the content of a mount comes from.
type MountKind string

// The kinds of mounts that a Spec can hold.
const (
	// MountBind shows the host's Source at Target, with whatever is mounted below it.
	MountBind MountKind = "bind"
	// MountOverlay shows Source (the lower layer) at Target with writes going to Upper.
	MountOverlay MountKind = "overlay"
	// MountSymlink makes a symbolic link at Target that holds Source as its text.
	MountSymlink MountKind = "symlink"
	// MountFile makes a read-only regular file at Target with Content.
	MountFile MountKind = "file"
	// MountMask hides what is at Target: a directory under an empty read-only one, a file under an
	// empty unreadable one.
	MountMask MountKind = "mask"
)

// Mount is one thing that a run sees besides the skeleton. Paths are absolute and clean, and no part of
// them is a symbolic link; [FollowLinks] and [Show] make such paths. Where Target is missing it is made,
// but never inside of another mount, least of all the workspace.
type Mount struct {
	Kind    MountKind
	Source  string
	Target  string
	Content []byte // MountFile

	// Writable lets a bind be written. Binds are read-only, and every mount is nosuid and nodev,
	// unless said.
	Writable bool
	// Optional skips the mount where Source does not exist or may not be read.
	Optional bool

	// Upper and Work are the writable layer and the work directory of MountOverlay, on one
	// filesystem, both empty directories unless Upper is prepared by the caller. The overlay is
	// volatile: a pair of them serves one run. Without them it is read-only, and needs a Mask.
	Upper, Work string
	// Mask is another lower layer of MountOverlay, above Source, that hides paths of it by whiteouts;
	// "" for none. Runs may share it.
	Mask string
}

// Limits bound what one run may use. Zero means no limit.
type Limits struct {
	Processes int     // processes and threads at once
	Memory    int64   // bytes of resident memory of the whole run
	Disk      int64   // bytes that the run may write (private tmpfs; the layer is the caller's to watch)
	Files     int     // open files of a process
	CPU       float64 // cores

	// Strict refuses to start where a limit can't be held by a kernel mechanism on this host.
	Strict bool
}

// Network is the attachment of a run to a network.
type Network string

// The networks that a run can be attached to.
const (
	// NetworkNone is a namespace of its own with a loopback interface and nothing else.
	NetworkNone Network = "none"
	// NetworkRedirected is a namespace of its own too, in which every connection to anywhere else, and every
	// DNS query, arrives at a socket that [Stdio].Attach gets, or is refused.
	NetworkRedirected Network = "redirected"
	// NetworkHost is the host's own network; only the direct backend takes it.
	NetworkHost Network = "host"
)

// OpEnterDir is the Op of a [SetupError] that is about Spec.Dir: the sandbox stood, but the directory does
// not exist in it or may not be entered. It is the one set-up error that is no fault of the host.
const OpEnterDir = "enter working directory"

// OpMountOverlay is the Op of a [SetupError] that is about a [MountOverlay] which the kernel did not take; its
// Path is the Source. The caller may have another way to show that directory.
const OpMountOverlay = "mount overlay on"

// SetupError says why a sandbox could not be built. The run did not start.
type SetupError struct {
	Op   string // what was tried: "create namespaces", "mount overlay"
	Path string // what it was tried on, if anything
	Err  error  // the cause
	Hint string // what the person can do about it; "" if nothing is known
}

// Error gives operation, path and cause on one line; the hint stands apart in Hint.
func (e *SetupError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("sandbox: %s %s: %v", e.Op, e.Path, e.Err)
	}
	return fmt.Sprintf("sandbox: %s: %v", e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }
