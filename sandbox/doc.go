// Package sandbox runs a command so that it can reach only what it was given.
//
// # What an attacker controls
//
// Everything that the command executes, writes and prints, and everything that the workspace holds: file
// names, links, programs of the same name as the system's. The attacker may leave processes behind,
// ignore every signal, exhaust what is not limited, and try each system call. Trusted are the [Spec], the
// binary that this package is part of, and the kernel.
//
// # Life cycle
//
// A [Spec] describes one run as a value: arguments, environment, mounts, limits. A [Backend] starts it, or
// refuses with a [*SetupError] that has a cause and, where one is known, what the person can do. The
// [Process] is waited for; after that nothing of the run is left.
//
//	func main() {
//		backend, err := sandbox.NewNative()
//		…
//		defer backend.Close()
//		system, err := sandbox.HostSystem(os.Environ(), os.Getuid(), os.Getgid())
//		…
//		process, err := backend.Start(ctx, sandbox.Spec{
//			ID:      "example",
//			Argv:    []string{"sh", "-c", "make test"},
//			Env:     []string{"PATH=" + strings.Join(system.Path, ":")},
//			Dir:     "/home/ann/src",
//			Home:    system.Account.Home,
//			UID:     os.Getuid(),
//			GID:     os.Getgid(),
//			Mounts:  append(system.Mounts, workspace),
//			Network: sandbox.NetworkNone,
//		}, sandbox.Stdio{Output: os.Stdout})
//		…
//		exit, err := process.Wait()
//	}
//
// # How the native backend does it
//
// The server has a small process execute a sealed copy of its own binary as init, PID 1 of new user, mount, pid, network,
// ipc and uts namespaces (starter_linux.go, launch_linux.go). Over a socket it hands init a plan (handoff.go draws the
// protocol), which was computed from the Spec by a pure function (plan.go says why in which order). Init
// takes from the host's mounts what the plan names, builds the new root, leaves the host's
// (mounts_linux.go), drops every right (rights_linux.go), puts up a second wall where the kernel has Landlock
// (landlock_linux.go), installs the system call filter (seccomp_linux.go)
// and executes the command; or does the same to a shell that it started before there was a run, and has it take the command
// (shell_start_linux.go). Where there is an overlay it carries out the renames of directories that overlayfs
// refuses, on threads that have no more rights than the command (rename_linux.go draws how). It reaps,
// counts and ends what the command leaves behind (reap_linux.go),
// and exits when the server lets go of it or ends: the kernel then kills whatever is in its pid namespace. What the
// kernel would keep after that, cgroups, a small process of its own removes (janitor_linux.go).
//
// # How the bubblewrap backend does it
//
// Bubblewrap makes the namespaces, sees the host's whole root, and executes init with every capability over
// them (bubblewrap_start_linux.go). Init does what it does with native. [Choose] says which of the two works.
//
// # Vocabulary
//
//   - run: one command with everything that it starts.
//   - payload: the command's processes, as opposed to init.
//   - init: this binary, as PID 1 of the run's namespaces. It is trusted.
//   - scratch: the private tmpfs of a run. Its sub-directories are seen as /tmp, /home, /run, /var/tmp and
//     /dev/shm, the run's faces of it, so that one size bounds them all.
//   - skeleton: what every run has: an empty root, /proc, /dev, the faces of scratch.
//   - show: to bind something of the host, read-only, at its own real path, with the links that lead to it.
//   - mask: to cover something that is shown with something empty.
//   - held: a limit is held if a kernel mechanism enforces it, and not only this program.
//
// # Limitations
//
//   - The kernel is not defended against: a hole in a system call that the filter allows is a hole here.
//   - A run sees the host's kernel version, its processors and memory, load, and uptime in /proc.
//   - A Unix socket that is bound in a directory which a bind shows is masked if it was there when the run began and is
//     listed in the server's network namespace under its path; one that comes later can be connected to before
//     Linux 7.1. One that is a bind's Source can be connected to.
//   - No core is dumped, unless the server's own hard limit on core files is 0 and the host's core_pattern names a program,
//     or that names a socket. A run that sets the limit is told that it did.
//   - An ordinary user's runs keep the user's supplementary groups, which the kernel lets nobody drop without
//     rights. They matter only for files that are shown.
//   - Run by root for a workspace of root's, the payload is uid 0 without any capability: of what is shown it
//     reads all that belongs to root, whatever the modes' other bits say.
//   - Where a run has another uid than the server, the layer of its workspace must lie where that uid may
//     go.
//   - A run gets no leases (F_SETLEASE is EINVAL). Locks on files that a bind shows are the host's own.
//   - Files in the workspace that belong to other users are seen as nobody's, and can't be changed in place.
//   - The rename of a directory that lies in an overlay's lower layer is not atomic, costs a copy of every
//     file in it, and leaves open directories and working directories in it behind. It is EXDEV if something
//     is mounted in the directory, if another user owns parts of it, if the path goes through a link such
//     as /proc/self/cwd, if the caller is not dumpable, if Yama's ptrace_scope is above 1, and after
//     any process of the run has used Landlock.
//   - A file of the workspace that a run links to gets another inode number under its old name; one that was written
//     may get another when the kernel forgets it. Of several names that a file has in the workspace, a
//     write in a run changes one.
//   - A run with an overlay can have no seccomp listener of its own (EBUSY), and is not shown its renames by
//     SECCOMP_RET_TRACE. Where the server is below a listener itself, such renames are EXDEV.
//   - [Bubblewrap] refuses every run where bubblewrap gives what it executes no rights over its namespaces, as one that
//     is setuid root does.
//   - Memory and processors are held only where there is a cgroup; [Backend].Held says so.
//   - [Direct] isolates nothing. A process that starts a session of its own survives its run there.
package sandbox
