package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelProbes try subsystems of the kernel that a run has no use for, and that have a history of holes. Arguments are
// such that nothing happens where they are let through.
func kernelProbes() []probe {
	// Each of these can be left out when a kernel is built; kexec and modules also by lockdown.
	optional := []error{unix.ENOSYS, unix.ENOENT, unix.EPERM}
	const why = "this kernel was built without it"
	table := []probe{
		{name: "io_uring", try: calling(unix.SYS_IO_URING_SETUP, 1, 0), held: refused(unix.ENOSYS), beyond: refused(unix.EFAULT)},
		{name: "io_uring_enter", try: calling(unix.SYS_IO_URING_ENTER, minusOne, 0, 0, 0, 0, 0), held: refused(unix.ENOSYS), beyond: refused(unix.EBADF)},
		{name: "keyctl", try: calling(unix.SYS_KEYCTL, 1<<30), held: refused(unix.ENOSYS), beyond: refused(unix.EOPNOTSUPP)},
		{name: "keyctl, session keyring", try: calling(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2), 1), held: refused(unix.ENOSYS)},
		{name: "add_key", try: calling(unix.SYS_ADD_KEY, 0, 0, 0, 0, 0), held: refused(unix.ENOSYS), beyond: refused(unix.EFAULT)},
		{name: "request_key", try: calling(unix.SYS_REQUEST_KEY, 0, 0, 0, 0), held: refused(unix.ENOSYS), beyond: refused(unix.EFAULT)},
		{name: "bpf", try: calling(unix.SYS_BPF, 0, 0, 8), held: refused(unix.EPERM), beyond: refused(unix.EFAULT)},
		{name: "perf_event_open", try: calling(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0), held: refused(unix.EPERM), beyond: refused(unix.EFAULT)},
		{name: "userfaultfd", try: userfaultfd, held: refused(unix.EPERM)},
		{name: "init_module", try: calling(unix.SYS_INIT_MODULE, 0, 0, 0), held: refused(unix.EPERM), control: asRoot, beyond: refused(unix.EFAULT, unix.ENOEXEC)},
		{name: "finit_module", try: calling(unix.SYS_FINIT_MODULE, minusOne, 0, 0), held: refused(unix.EPERM), control: asRoot, beyond: refused(unix.EBADF, unix.EFAULT)},
		{name: "delete_module", try: calling(unix.SYS_DELETE_MODULE, 0, 0), held: refused(unix.EPERM), control: asRoot, beyond: refused(unix.EFAULT)},
		{name: "kexec_load", try: calling(unix.SYS_KEXEC_LOAD, 0, 0, 0, minusOne), held: refused(unix.EPERM), control: asRoot, beyond: refused(unix.EINVAL)},
		{name: "kexec_file_load", try: calling(unix.SYS_KEXEC_FILE_LOAD, minusOne, minusOne, 0, 0, minusOne), held: refused(unix.EPERM), control: asRoot, beyond: refused(unix.EINVAL)},
		{name: "reboot", try: calling(unix.SYS_REBOOT, 0, 0, 0), held: refused(unix.EPERM), control: apart, beyond: refused(unix.EINVAL)},
		{name: "swapon", try: calling(unix.SYS_SWAPON, 0, 0), held: refused(unix.EPERM), control: asRoot, beyond: refused(unix.EFAULT)},
		{name: "swapoff", try: calling(unix.SYS_SWAPOFF, 0), held: refused(unix.EPERM), control: asRoot, beyond: refused(unix.EFAULT)},
		{name: "acct", try: calling(unix.SYS_ACCT, emptyPath()), held: refused(unix.EPERM), control: asRoot, beyond: refused(unix.ENOENT)},
		{
			name: "half of the user's inotify instances", try: takeInstances, held: refused(unix.EMFILE),
			absent: refused(unix.EMFILE), why: "the user's other programs have more than half of them",
		},
		{name: "typing into a terminal", try: typeIntoTerminal, held: refused(unix.EPERM)},
		{name: "typing into a terminal, number with a high bit", try: calling(unix.SYS_IOCTL, minusOne, unix.TIOCSTI|1<<32), held: refused(unix.EPERM), beyond: refused(unix.EBADF)},
		{name: "console selection", try: calling(unix.SYS_IOCTL, minusOne, unix.TIOCLINUX), held: refused(unix.EPERM), beyond: refused(unix.EBADF)},
		{name: "kernel log", try: calling(unix.SYS_SYSLOG, 10, 0, 0), held: refused(unix.EPERM), control: asRoot},
		{name: "kernel log as /proc/kmsg", try: opens("/proc/kmsg", unix.O_RDONLY), held: refused(unix.EACCES), control: asRoot},
		{name: "kernel log as /dev/kmsg", try: opens("/dev/kmsg", unix.O_PATH), held: refused(unix.ENOENT)},
		{name: "kernel symbols", try: readsSomething("/proc/kallsyms"), held: refused(unix.EACCES)},
		{name: "kernel memory", try: opens("/proc/kcore", unix.O_RDONLY), held: refused(unix.EACCES, unix.ENOENT), control: asRoot},
		{name: "keys of the user", try: opens("/proc/keys", unix.O_RDONLY), held: refused(unix.EACCES, unix.ENOENT)},
	}
	for i := range table {
		if strings.Contains(table[i].name, "module") || strings.HasPrefix(table[i].name, "k") {
			table[i].absent, table[i].why = optional, why
		}
	}
	return table
}

func userfaultfd(*stage) error {
	const userModeOnly = 1 // needs no right since Linux 5.11
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, userModeOnly|unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

func readsSomething(name string) func(*stage) error {
	return func(*stage) error {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Read(make([]byte, 8)) // some give no less
		return err
	}
}

// typeIntoTerminal makes a terminal and a process whose terminal it is, which then types into it.
func typeIntoTerminal(s *stage) error {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		return err
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer terminal.Close()
	return s.step("type into the terminal", func(cmd *exec.Cmd) {
		cmd.Stdin = terminal
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	})
}

func typeInto(*stage) error {
	c := []byte("x")
	return call(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&c[0])))()
}

// takeInstances takes, for a moment, what the user's other programs would have to do without.
func takeInstances(*stage) error {
	limit, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(limit)))
	if err != nil {
		return err
	}
	for range n / 2 {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
	}
	return nil
}
