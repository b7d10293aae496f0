package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"
)

// nativeNumbers are the numbers in the rules for the architecture that the test runs on, and those of
// golang.org/x/sys, which come from the kernel's headers.
func nativeNumbers() (rules map[string]int, headers map[string]int) {
	rules = make(map[string]int)
	for _, r := range slices.Concat(refused, ownership(0, 0), notified, numbersAllowed) {
		rules[r.name] = r.arm64
	}
	return rules, map[string]int{
		"io_uring_setup":         unix.SYS_IO_URING_SETUP,
		"io_uring_enter":         unix.SYS_IO_URING_ENTER,
		"io_uring_register":      unix.SYS_IO_URING_REGISTER,
		"add_key":                unix.SYS_ADD_KEY,
		"request_key":            unix.SYS_REQUEST_KEY,
		"keyctl":                 unix.SYS_KEYCTL,
		"bpf":                    unix.SYS_BPF,
		"perf_event_open":        unix.SYS_PERF_EVENT_OPEN,
		"userfaultfd":            unix.SYS_USERFAULTFD,
		"kcmp":                   unix.SYS_KCMP,
		"lookup_dcookie":         unix.SYS_LOOKUP_DCOOKIE,
		"nfsservctl":             unix.SYS_NFSSERVCTL,
		"clone":                  unix.SYS_CLONE,
		"clone3":                 unix.SYS_CLONE3,
		"unshare":                unix.SYS_UNSHARE,
		"setns":                  unix.SYS_SETNS,
		"mount":                  unix.SYS_MOUNT,
		"umount2":                unix.SYS_UMOUNT2,
		"pivot_root":             unix.SYS_PIVOT_ROOT,
		"chroot":                 unix.SYS_CHROOT,
		"open_tree":              unix.SYS_OPEN_TREE,
		"open_tree_attr":         unix.SYS_OPEN_TREE_ATTR,
		"move_mount":             unix.SYS_MOVE_MOUNT,
		"fsopen":                 unix.SYS_FSOPEN,
		"fsconfig":               unix.SYS_FSCONFIG,
		"fsmount":                unix.SYS_FSMOUNT,
		"fspick":                 unix.SYS_FSPICK,
		"mount_setattr":          unix.SYS_MOUNT_SETATTR,
		"name_to_handle_at":      unix.SYS_NAME_TO_HANDLE_AT,
		"open_by_handle_at":      unix.SYS_OPEN_BY_HANDLE_AT,
		"quotactl":               unix.SYS_QUOTACTL,
		"quotactl_fd":            unix.SYS_QUOTACTL_FD,
		"mknod":                  absent,
		"mknodat":                unix.SYS_MKNODAT,
		"init_module":            unix.SYS_INIT_MODULE,
		"finit_module":           unix.SYS_FINIT_MODULE,
		"delete_module":          unix.SYS_DELETE_MODULE,
		"kexec_load":             unix.SYS_KEXEC_LOAD,
		"kexec_file_load":        unix.SYS_KEXEC_FILE_LOAD,
		"reboot":                 unix.SYS_REBOOT,
		"swapon":                 unix.SYS_SWAPON,
		"swapoff":                unix.SYS_SWAPOFF,
		"acct":                   unix.SYS_ACCT,
		"iopl":                   absent,
		"ioperm":                 absent,
		"settimeofday":           unix.SYS_SETTIMEOFDAY,
		"clock_settime":          unix.SYS_CLOCK_SETTIME,
		"clock_adjtime":          unix.SYS_CLOCK_ADJTIME,
		"adjtimex":               unix.SYS_ADJTIMEX,
		"sethostname":            unix.SYS_SETHOSTNAME,
		"setdomainname":          unix.SYS_SETDOMAINNAME,
		"syslog":                 unix.SYS_SYSLOG,
		"vhangup":                unix.SYS_VHANGUP,
		"personality":            unix.SYS_PERSONALITY,
		"socket":                 unix.SYS_SOCKET,
		"socketpair":             unix.SYS_SOCKETPAIR,
		"ioctl":                  unix.SYS_IOCTL,
		"rename":                 absent,
		"chown":                  absent,
		"lchown":                 absent,
		"fchown":                 unix.SYS_FCHOWN,
		"fchownat":               unix.SYS_FCHOWNAT,
		"renameat":               unix.SYS_RENAMEAT,
		"renameat2":              unix.SYS_RENAMEAT2,
		"link":                   absent,
		"linkat":                 unix.SYS_LINKAT,
		"landlock_restrict_self": unix.SYS_LANDLOCK_RESTRICT_SELF,
		"read":                   unix.SYS_READ,
		"execve":                 unix.SYS_EXECVE,
		"ptrace":                 unix.SYS_PTRACE,
		"seccomp":                unix.SYS_SECCOMP,
		"process_vm_readv":       unix.SYS_PROCESS_VM_READV,
		"statx":                  unix.SYS_STATX,
		"rseq":                   unix.SYS_RSEQ,
		"fork":                   absent,
	}
}
