package sandbox

import (
	"context"
	"io"
)

// Backend turns a [Spec] into a running process. Implementations are safe for concurrent use.
//
// A backend keeps these promises, or refuses to start with a [*SetupError]:
//
//   - the run sees the skeleton, Spec.Mounts and nothing else of the host;
//   - it holds no capability over anything, cannot gain one, and can make no user namespace;
//   - it holds no descriptor but 0, 1 and 2;
//   - when [Process.Wait] has returned, no process of the run exists, nothing more is written to any
//     of its writable layers or to the output, and no mount, cgroup or descriptor of it is left;
//   - the same becomes true within two seconds of the death of the server, however it dies.
//
// The direct backend keeps none of the first three; Unconfined says so.
type Backend interface {
	// Name is the name that the configuration uses.
	Name() string

	// Unconfined is true if runs of this backend are not isolated at all.
	Unconfined() bool

	// Probe builds a sandbox, runs a program that does nothing in it and takes it down again. It
	// returns nil, or the *SetupError that every Start on this host would meet, with cause and mend.
	Probe(ctx context.Context) error

	// Held reports, for each limit ("processes", "memory", "disk", "files", "cpu"), what kernel mechanism
	// holds it on this host ("cgroup v1", "rlimit"); [Watched] if none does, but airlock looks and ends the
	// run; [Affinity]; or "" if nothing is done about it.
	Held() map[string]string

	// Start starts the run. When ctx ends the run is killed, whatever it does; what ended ctx is the
	// caller's to know (context.Cause). A *SetupError says that the run never started.
	Start(ctx context.Context, spec Spec, stdio Stdio) (Process, error)

	// Close releases what the backend keeps for all runs. No run may be going on.
	Close() error
}

// Watched is what [Backend].Held says of a limit that is not held by the kernel: the run is looked at every 50 ms,
// and ended if it is beyond the limit. What it takes in between it has.
const Watched = "watch"

// Affinity is what [Backend].Held says of a limit on processors that a run is only started with: as many as the
// limit allows, rounded up. A run can undo it.
const Affinity = "affinity"

// IsHeld reports whether by, a value of [Backend].Held, is a kernel mechanism that a run can't undo.
func IsHeld(by string) bool { return by != "" && by != Watched && by != Affinity }

// Stdio is what a run reads and writes.
type Stdio struct {
	// Stdin is given to the run through a pipe; nil is an empty input. The server's own standard
	// input is never passed on.
	Stdin io.Reader
	// Output gets standard output and standard error through one pipe, in the order written. Writes
	// come from one goroutine. It must not block for long: a run that writes waits for it.
	Output io.Writer
	// Attach gets the sockets of a run with [NetworkRedirected], and owns them from then on. If it
	// fails the run is ended, if it has started at all.
	Attach func(Sockets) error
	// Scratch is told what the private tmpfs of the run holds, in bytes, while the run goes on: at most
	// every 50 ms, and only if it has changed; and once more, before [Process.Wait] returns, what it held
	// when the main process had ended. It must not block; nil is nobody. A backend without such a tmpfs
	// tells nothing.
	Scratch func(bytes int64)
}

// Process is a run that was started.
type Process interface {
	// Ended returns when no process that the command has started exists any more, nothing more is written to any
	// writable layer, and Output has got its last byte. What is left then is an empty sandbox, which stands until Wait.
	Ended() (Exit, error)

	// Wait returns when nothing of the run is left, and says how it ended. Each run must be waited for: without that its
	// sandbox stays for as long as the server.
	Wait() (Exit, error)
}

// Exit says how the main process of a run ended, as seen by the kernel. Exactly one of Code, Signal
// and Killed is meaningful.
type Exit struct {
	// Code is the exit status; 127 and 126 are also given, with StartError, where the command was not
	// found or could not be executed.
	Code int
	// Signal is the signal that ended the main process: "SIGSEGV"; "" if it exited.
	Signal string
	// Killed is true if the backend ended the whole run because its context ended, before the main
	// process had ended by itself.
	Killed bool
	// StartError says why the command could not be executed ("no such file or directory"); it then
	// never ran, but the sandbox stood.
	StartError string
	// Ended counts the background processes that were still running when the main process ended, and
	// were ended then: each child of the init process with its descendants is one.
	Ended int
	// Limit names a limit ("processes", "memory") that was reached, in the order of severity: as the kernel
	// counted it, or as the backend's own watch saw it; never a guess. LimitEnded is true if the run was
	// ended by it. HostShort says that the run was not beyond the limit itself: the host had so little memory
	// left that a run which no kernel mechanism holds could not go on.
	Limit      string
	LimitEnded bool
	HostShort  bool
	// Torn is true if a directory of an overlay that the run renamed could be neither renamed nor left as it
	// was: parts of it are under each name. The layer must not be used.
	Torn bool
	// Unrouted is true if something in the run wanted to reach an address, or the name of a host, to which no route of its
	// network leads, anything but its own loopback; only of [NetworkNone]. The kernel has counted it (OutNoRoutes).
	Unrouted bool
}
