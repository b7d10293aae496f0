package sandbox

import (
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// The namespaces that a call may ask for. In clone the low byte is the signal that is sent at exit, so
// that CLONE_NEWTIME, which lies there, can be asked for only by unshare and clone3.
const (
	cloneNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	unshareNamespaces = cloneNamespaces | unix.CLONE_NEWTIME
)

// The personalities that programs use: 0, PER_LINUX32 (setarch), UNAME26, ADDR_NO_RANDOMIZE (gdb) and
// the question for the present one. The others switch off protections of memory or emulate systems that
// nobody runs any more.
const (
	perLinux32      = 0x8
	perUname26      = 0x20000
	perNoRandomize  = 0x40000
	perOnlyAsk      = 0xffffffff
	ioctlTIOCSTI    = unix.TIOCSTI
	ioctlTIOCLINUX  = unix.TIOCLINUX
	netlinkProtocol = unix.NETLINK_ROUTE
	setDelegation   = unix.F_SETLEASE + 16 // F_SETDELEG (Linux 6.19), a lease on a directory
)

// refused is what a run may not call although nothing else may stop it. It is a denylist: the run has
// no capability and sees only its own namespaces, so the list holds what widens the kernel's surface
// beyond that, and a second lock on what the rights already forbid.
//
// Two kinds of answers: what is a feature of the kernel gets ENOSYS, as from a kernel built without it,
// for which libraries have a fallback; what is a privilege gets EPERM, as for everyone who hasn't got it.
//
// Left out on purpose: ptrace and process_vm_*, because debuggers in a run are its own business (init and
// the host are out of reach by rights and PID namespace, and the filter is asked after a tracer has
// changed a call); seccomp itself, because a filter on top can only take away.
var refused = []rule{
	// Kernel subsystems with a history of holes and no use in a run.
	{"io_uring_setup", 425, 425, unix.ENOSYS, nil}, // its operations are not seen by this filter
	{"io_uring_enter", 426, 426, unix.ENOSYS, nil},
	{"io_uring_register", 427, 427, unix.ENOSYS, nil},
	{"add_key", 248, 217, unix.ENOSYS, nil}, // keyrings belong to the user, not to a namespace
	{"request_key", 249, 218, unix.ENOSYS, nil},
	{"keyctl", 250, 219, unix.ENOSYS, nil},
	{"bpf", 321, 280, unix.EPERM, nil},
	{"perf_event_open", 298, 241, unix.EPERM, nil},
	{"userfaultfd", 323, 282, unix.EPERM, nil}, // stops kernel code at a place of the caller's choice
	{"kcmp", 312, 272, unix.EPERM, nil},        // tells the order of kernel addresses
	{"lookup_dcookie", 212, 18, unix.EPERM, nil},
	{"nfsservctl", 180, 42, unix.ENOSYS, nil},

	// Namespaces: a new user namespace would give every capability over what is made in it.
	{"clone", 56, 220, unix.EPERM, []condition{anyBit(0, cloneNamespaces)}},
	{"clone3", 435, 435, unix.ENOSYS, nil}, // its flags are in memory, where no filter can look; libc falls back to clone
	{"unshare", 272, 97, unix.EPERM, []condition{anyBit(0, unshareNamespaces)}},
	{"setns", 308, 268, unix.EPERM, nil},

	// Mounts, and file handles, which open files beside every path.
	{"mount", 165, 40, unix.EPERM, nil},
	{"umount2", 166, 39, unix.EPERM, nil},
	{"pivot_root", 155, 41, unix.EPERM, nil},
	{"chroot", 161, 51, unix.EPERM, nil},
	{"open_tree", 428, 428, unix.EPERM, nil},
	{"open_tree_attr", 467, 467, unix.EPERM, nil},
	{"move_mount", 429, 429, unix.EPERM, nil},
	{"fsopen", 430, 430, unix.EPERM, nil},
	{"fsconfig", 431, 431, unix.EPERM, nil},
	{"fsmount", 432, 432, unix.EPERM, nil},
	{"fspick", 433, 433, unix.EPERM, nil},
	{"mount_setattr", 442, 442, unix.EPERM, nil},
	{"name_to_handle_at", 303, 264, unix.EPERM, nil},
	{"open_by_handle_at", 304, 265, unix.EPERM, nil},
	{"quotactl", 179, 60, unix.EPERM, nil},
	{"quotactl_fd", 443, 443, unix.EPERM, nil},

	// The kernel asks for CAP_MKNOD, except for character 0:0, which is an overlayfs whiteout and which
	// anyone may make on a plain filesystem. (An overlay refuses it by itself.)
	{"mknod", 133, absent, unix.EPERM, []condition{maskedIn(1, unix.S_IFMT, unix.S_IFCHR, unix.S_IFBLK)}},
	{"mknodat", 259, 33, unix.EPERM, []condition{maskedIn(2, unix.S_IFMT, unix.S_IFCHR, unix.S_IFBLK)}},

	// The machine: kernel code, power, swap, accounting, ports, clock, names, log.
	{"init_module", 175, 105, unix.EPERM, nil},
	{"finit_module", 313, 273, unix.EPERM, nil},
	{"delete_module", 176, 106, unix.EPERM, nil},
	{"kexec_load", 246, 104, unix.EPERM, nil},
	{"kexec_file_load", 320, 294, unix.EPERM, nil},
	{"reboot", 169, 142, unix.EPERM, nil},
	{"swapon", 167, 224, unix.EPERM, nil},
	{"swapoff", 168, 225, unix.EPERM, nil},
	{"acct", 163, 89, unix.EPERM, nil},
	{"iopl", 172, absent, unix.EPERM, nil},
	{"ioperm", 173, absent, unix.EPERM, nil},
	{"settimeofday", 164, 170, unix.EPERM, nil},
	{"clock_settime", 227, 112, unix.EPERM, nil},
	{"clock_adjtime", 305, 266, unix.EPERM, nil},
	{"adjtimex", 159, 171, unix.EPERM, nil},
	{"sethostname", 170, 161, unix.EPERM, nil},
	{"setdomainname", 171, 162, unix.EPERM, nil},
	{"syslog", 103, 116, unix.EPERM, nil},
	{"vhangup", 153, 58, unix.EPERM, nil},
	{"personality", 135, 92, unix.EPERM, []condition{argNotIn(0, 0, perLinux32, perUname26, perUname26|perLinux32,
		perNoRandomize, perNoRandomize|perLinux32, perOnlyAsk)}},

	// Sockets: the families UNIX, INET, INET6 and NETLINK, of NETLINK only ROUTE (getaddrinfo and
	// "ip addr" ask it), of INET only the protocols that programs speak; the others make the kernel load
	// modules. VSOCK reaches the hypervisor whatever the network namespace is, and ALG and PACKET reach
	// kernel code that a run has no use for.
	{"socket", 41, 198, unix.EAFNOSUPPORT, []condition{argNotIn(0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)}},
	{"socket", 41, 198, unix.EPROTONOSUPPORT, []condition{argIn(0, unix.AF_NETLINK), argNotIn(2, netlinkProtocol)}},
	{"socket", 41, 198, unix.EPROTONOSUPPORT, []condition{argIn(0, unix.AF_INET, unix.AF_INET6), argNotIn(2, 0,
		unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6, unix.IPPROTO_RAW, unix.IPPROTO_MPTCP)}},
	{"socketpair", 53, 199, unix.EAFNOSUPPORT, []condition{argNotIn(0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)}},

	// The limit on core files has to stay what it is: see coreLimit. Programs that hold secrets, such as gpg and
	// ssh-agent, set it to 0 and end if they can't; what they want of it is the case. Only who asks for the old value in
	// the same call is told the truth, since it would go on with a value that nobody wrote.
	{"setrlimit", 160, 164, pretend, []condition{argIn(0, unix.RLIMIT_CORE)}},
	{"prlimit64", 302, 261, unix.EPERM, []condition{argIn(1, unix.RLIMIT_CORE), anyBit(2, wholeWord), anyBit(3, wholeWord)}},
	{"prlimit64", 302, 261, unix.EPERM, []condition{argIn(1, unix.RLIMIT_CORE), anyBit(2, wholeWord), anyHighBit(3)}},
	{"prlimit64", 302, 261, unix.EPERM, []condition{argIn(1, unix.RLIMIT_CORE), anyHighBit(2), anyBit(3, wholeWord)}},
	{"prlimit64", 302, 261, unix.EPERM, []condition{argIn(1, unix.RLIMIT_CORE), anyHighBit(2), anyHighBit(3)}},
	{"prlimit64", 302, 261, pretend, []condition{argIn(1, unix.RLIMIT_CORE), anyBit(2, wholeWord)}},
	{"prlimit64", 302, 261, pretend, []condition{argIn(1, unix.RLIMIT_CORE), anyHighBit(2)}},

	// Other processes' limits, of which the kernel asks for no more than the same user: init's is the run's, and an init that
	// may open no file sees nothing any more. Which number is the caller's own no filter can tell, only that 0 is.
	{"prlimit64", 302, 261, unix.EPERM, []condition{argNotIn(0, 0), anyBit(2, wholeWord)}},
	{"prlimit64", 302, 261, unix.EPERM, []condition{argNotIn(0, 0), anyHighBit(2)}},

	// A lease on a file has everybody else who opens it wait, for 45 seconds; read access and the same user is all that it
	// takes, so that a run could hold up the host's programs by what it is shown. The answer is that of a filesystem without.
	{"fcntl", 72, 25, unix.EINVAL, []condition{argIn(1, unix.F_SETLEASE, setDelegation)}},

	// Terminals: typing into one that someone else reads, and the console's counterpart of it.
	{"ioctl", 16, 29, unix.EPERM, []condition{argIn(1, ioctlTIOCSTI, ioctlTIOCLINUX)}},
}

// refusedHere is what a run of this process's user, that this process is the init of, may not call.
func refusedHere() []rule { return slices.Concat(refusedAlways(), scheduling(ownThreads())) }

// refusedAlways is refusedHere but for what concerns the threads that this process has now.
func refusedAlways() []rule { return slices.Concat(refused, ownership(os.Getuid(), os.Getgid())) }

// scheduling keeps the threads with these ids as they are scheduled. They are init's: some of them have the payload's
// user and no capability, and that is all that the kernel asks for before it lets one process take another's processor
// away. An init that is not scheduled ends nothing. No process of the run has one of their ids, or gets one later: the kernel
// hands out the low ones once.
func scheduling(threads []uint32) []rule {
	const (
		prioUser   = 2
		ioprioUser = 3
	)
	return []rule{
		{"sched_setparam", 142, 118, unix.EPERM, []condition{argIn(0, threads...)}},
		{"sched_setscheduler", 144, 119, unix.EPERM, []condition{argIn(0, threads...)}},
		{"sched_setattr", 314, 274, unix.EPERM, []condition{argIn(0, threads...)}},
		{"sched_setaffinity", 203, 122, unix.EPERM, []condition{argIn(0, threads...)}},
		{"setpriority", 141, 140, unix.EPERM, []condition{argIn(1, threads...)}},
		{"setpriority", 141, 140, unix.EPERM, []condition{argIn(0, prioUser)}},
		{"ioprio_set", 251, 30, unix.EPERM, []condition{argIn(1, threads...)}},
		{"ioprio_set", 251, 30, unix.EPERM, []condition{argIn(0, ioprioUser)}},
	}
}

// ownThreads are the ids of this process's threads, the first few of them: init has a dozen.
func ownThreads() []uint32 {
	threads := []uint32{uint32(os.Getpid())}
	entries, _ := os.ReadDir("/proc/self/task") // without /proc the first thread is the one that counts
	for _, e := range entries[:min(len(entries), maxThreads)] {
		if id, err := strconv.ParseUint(e.Name(), 10, 32); err == nil && !slices.Contains(threads, uint32(id)) {
			threads = append(threads, uint32(id))
		}
	}
	return threads
}

// threadList is what ownThreads gives, and when.
type threadList struct {
	threads []uint32
	count   uint64
}

func (l *threadList) list() { l.count, l.threads = countThreads(), ownThreads() }

// now is ownThreads, which are listed again only if they have become more: to list them takes ten times as long as to count
// them, and none of them ends.
func (l *threadList) now() []uint32 {
	if n := countThreads(); n == 0 || n != l.count {
		l.list()
	}
	return l.threads
}

// countThreads grows with each thread of this process; 0 without /proc.
func countThreads() uint64 {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/task", &st); err != nil {
		return 0
	}
	return uint64(st.Nlink)
}

// maxThreads bounds a rule, whose length has 8 bits.
const maxThreads = 100

// ownership has chown to what a run's user namespace does not map fail as it does for every other user: with
// EPERM, which programs that restore owners expect and pass over. The namespace's own answer is EINVAL.
func ownership(uid, gid int) []rule {
	const keep = 0xffffffff
	var rules []rule
	for _, r := range []struct {
		rule
		first int // the argument that is the user; the group follows
	}{
		{rule{"chown", 92, absent, unix.EPERM, nil}, 1},
		{rule{"fchown", 93, 55, unix.EPERM, nil}, 1},
		{rule{"lchown", 94, absent, unix.EPERM, nil}, 1},
		{rule{"fchownat", 260, 54, unix.EPERM, nil}, 2},
	} {
		for i, id := range []int{uid, gid} {
			r.when = []condition{argNotIn(r.first+i, keep, uint32(id))}
			rules = append(rules, r.rule)
		}
	}
	return rules
}

// notified are the calls that a run on an overlay makes under init's eyes: see renamer.
var notified = []rule{
	{"rename", 82, absent, notify, nil},
	{"renameat", 264, 38, notify, nil},
	{"renameat2", 316, 276, notify, nil},
	{"link", 86, absent, notify, nil},
	{"linkat", 265, 37, notify, nil},
	{"landlock_restrict_self", 446, 446, notify, nil}, // it passes; init has to know of it
}
