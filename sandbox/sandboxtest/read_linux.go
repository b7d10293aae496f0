package sandboxtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readProbes try to read what is the host's, by each kind of name that it has.
func readProbes() []probe {
	const none = unix.ENOENT
	table := []probe{
		{name: "secret below home", try: reads(func(s *stage) string { return s.Secret }), held: refused(none)},
		{name: "other workspace", try: reads(func(s *stage) string { return s.Other }), held: refused(none)},
		{name: "file in the host's /tmp", try: reads(func(s *stage) string { return s.Tmp }), held: refused(none)},
		{name: "file in the host's /dev/shm", try: reads(func(s *stage) string { return s.Shm }), held: refused(none)},
		{name: "secret through a link in the workspace", try: reads(inWorkspace("link-to-secret")), held: refused(none)},
		{name: "secret through a link to its directory", try: reads(inWorkspace("link-to-home/id_secret")), held: refused(none)},
		{name: "secret through ..", try: reads(func(s *stage) string { return strings.Repeat("../", 40) + s.Secret[1:] }), held: refused(none)},
		{name: "secret through /proc/self/root", try: reads(func(s *stage) string { return "/proc/self/root" + s.Secret }), held: refused(none)},
		{name: "secret through /proc/self/cwd", try: reads(func(s *stage) string { return "/proc/self/cwd" + strings.Repeat("/..", 40) + s.Secret }), held: refused(none)},
		{name: "secret through an open directory", try: secretThroughDirectory, held: refused(none)},
		{name: "secret through a hard link", try: secretThroughHardLink, held: refused(none)},
		{name: "secret by a file handle", try: secretByHandle, held: refused(unix.EPERM), control: asRoot},
		{name: "search of all mounts for names of the host's", try: searchMounts, held: refused(errNothing)},
		{name: "masked file", try: reads(inShown("hidden")), held: refused(unix.EACCES)},
		{name: "masked directory", try: reads(inShown("hiddendir/file")), held: refused(none)},
		{name: "file of another user's", try: reads(inShown("private")), held: refused(unix.EACCES, none), control: asRoot},
		{name: "shadow", try: opens("/etc/shadow", unix.O_PATH), held: refused(none)},
		{
			name: "host keys", try: opens("/etc/ssh", unix.O_PATH), held: refused(none),
			absent: refused(none), why: "this host has no ssh",
		},
		{
			name: "where the sandbox was built", try: opens("/.scratch", unix.O_PATH), held: refused(none),
			control: nowhere, why: "the host has no such place",
		},
		{name: "sysfs", try: opens("/sys/kernel", unix.O_PATH), held: refused(none)},
		{name: "System V shared memory", try: sharedMemory, held: refused(none)},
		{name: "POSIX message queue", try: messageQueue, held: refused(none)},
	}
	for _, name := range hostInProc {
		table = append(table, probe{
			name: "content of /proc/" + name, try: readsSomething("/proc/" + name), held: refused(unix.EACCES, unix.EISDIR, none),
			control: asRoot, absent: refused(none, unix.EISDIR, unix.EPERM, unix.EIO), why: "this kernel has none, or it is a directory",
		})
	}
	return table
}

// hostInProc is what /proc has of the host's memory, devices and users, which nothing but rights keeps from a run.
var hostInProc = []string{
	"iomem", "ioports", "key-users", "kpagecount", "kpageflags", "pagetypeinfo", "sched_debug", "slabinfo", "timer_list", "vmallocinfo",
}

func inWorkspace(name string) func(*stage) string {
	return func(s *stage) string { return filepath.Join(s.Workspace, name) }
}

func inShown(name string) func(*stage) string {
	return func(s *stage) string { return filepath.Join(s.Shown, name) }
}

// reads tries to get the mark out of a file.
func reads(name func(*stage) string) func(*stage) error {
	return func(s *stage) error { return s.readMark(name(s)) }
}

func (s *stage) readMark(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return s.hasMark(b)
}

func (s *stage) hasMark(b []byte) error {
	if !bytes.Contains(b, []byte(s.Mark)) {
		return errNothing
	}
	return nil
}

func opens(name string, flags int) func(*stage) error {
	return func(*stage) error { return open(name, flags) }
}

func open(name string, flags int) error {
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// secretThroughDirectory leaves the workspace upwards from a descriptor that was opened in it.
func secretThroughDirectory(s *stage) error {
	fd, err := unix.Open(s.Workspace, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	if err := unix.Fchdir(fd); err != nil {
		return err
	}
	for range 40 {
		up, err := unix.Openat(fd, "..", unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		fd = up
	}
	return s.readMark(fmt.Sprintf("/proc/self/fd/%d%s", fd, s.Secret))
}

// secretThroughHardLink gives the secret a name that can be seen.
func secretThroughHardLink(s *stage) error {
	name := s.Secret + "-linked"
	if s.Inside {
		name = filepath.Join(s.Workspace, "linked")
	}
	if err := unix.Link(s.Secret, name); err != nil {
		return err
	}
	return s.readMark(name)
}

// secretByHandle opens a file beside every path. Its handle names the file on whatever filesystem the
// descriptor is of.
func secretByHandle(s *stage) error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, s.Shown, 0)
	if err != nil {
		return err
	}
	at, err := unix.Open(s.Shown, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	fd, err := unix.OpenByHandleAt(at, h, unix.O_RDONLY)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// searchMounts looks for a name of the stage's in every directory that can be reached and is not the system's. The
// control finds the stage where it is.
func searchMounts(s *stage) error {
	roots := []string{"/"}
	if !s.Inside {
		roots = []string{filepath.Dir(filepath.Dir(s.Secret))}
	}
	wanted := filepath.Base(s.Secret)
	found := errNothing
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case d.IsDir() && (p == "/proc" || p == "/usr" || p == "/nix" || p == "/gnu" || p == "/opt"):
				return fs.SkipDir
			case !d.IsDir() && d.Name() == wanted:
				found = nil
				return fs.SkipAll
			}
			return nil
		})
	}
	return found
}

func sharedMemory(s *stage) error {
	_, err := unix.SysvShmGet(s.SharedKey, 0, 0)
	return err
}

func messageQueue(s *stage) error {
	name, err := unix.BytePtrFromString(s.Queue)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDWR, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// processProbes try to see and touch the server and other processes.
func processProbes() []probe {
	return []probe{
		{name: "own environment", try: func(s *stage) error { return s.hasMark([]byte(strings.Join(os.Environ(), "\n"))) }, held: refused(errNothing)},
		{name: "inherited descriptors", try: inheritedDescriptors, held: refused(errNothing)},
		{name: "environment of other processes", try: searchProcesses("environ"), held: refused(errNothing)},
		{name: "command line of the server", try: serverCommandLine, held: refused(errNothing)},
		{name: "descriptors of the server", try: searchDescriptors, held: refused(errNothing)},
		{name: "signal to a process of the host's", try: func(s *stage) error { return unix.Kill(s.Witness, 0) }, held: refused(unix.ESRCH)},
		{name: "signal to the server", try: func(s *stage) error { return unix.Kill(s.Server, 0) }, held: refused(unix.ESRCH)},
		{name: "pidfd of a process of the host's", try: func(s *stage) error { _, err := unix.PidfdOpen(s.Witness, 0); return err }, held: refused(unix.ESRCH)},
		{name: "signals to init", try: signalsToInit, held: refused(errUnharmed)},
		{name: "signals to init, queued", try: onVictim(queueSignals), held: refused(errUnharmed)},
		{name: "signal to init by pidfd", try: pidfdSignal, held: refused(errUnharmed)},
		{name: "ptrace of init", try: onVictim(attach), held: refused(unix.EPERM)},
		{name: "ptrace of init by seizing", try: onVictim(seize), held: refused(unix.EPERM)},
		{name: "reading init's memory", try: onVictim(readMemory), held: refused(unix.EPERM), beyond: refused(unix.EFAULT)},
		{name: "writing init's memory", try: onVictim(writeMemory), held: refused(unix.EPERM), beyond: refused(unix.EFAULT)},
		{name: "init's memory as a file", try: onVictim(procOf("mem", unix.O_RDWR)), held: refused(unix.EACCES)},
		{name: "init's environment", try: onVictim(procOf("environ", unix.O_RDONLY)), held: refused(unix.EACCES)},
		{name: "init's maps", try: onVictim(procOf("maps", unix.O_RDONLY)), held: refused(unix.EACCES)},
		{name: "init's descriptors", try: onVictim(followDescriptor), held: refused(unix.EACCES)},
		{name: "init's root", try: onVictim(procOf("root/usr", unix.O_PATH)), held: refused(unix.EACCES)},
		{name: "init's working directory", try: onVictim(procOf("cwd/.", unix.O_PATH)), held: refused(unix.EACCES)},
		{name: "init's binary, read", try: onVictim(procOf("exe", unix.O_RDONLY)), held: refused(unix.EACCES)},
		{name: "init's binary, overwritten", try: overwriteBinary, held: refused(unix.EACCES)},
		{name: "init's namespaces", try: onVictim(procOf("ns/mnt", unix.O_RDONLY)), held: refused(unix.EACCES)},
		{name: "descriptor out of init", try: onVictim(stealDescriptor), held: refused(unix.EPERM)},
		{name: "limits of init", try: onVictim(setLimits), held: refused(unix.EPERM)},
		{name: "init scheduled last", try: onVictim(scheduleLast), held: refused(unix.EPERM)},
		{name: "init held to one processor", try: onVictim(bind), held: refused(unix.EPERM)},
		{name: "init made nicer", try: onVictim(makeNice), held: refused(unix.EPERM)},
		{name: "init's input and output last", try: onVictim(idleInput), held: refused(unix.EPERM)},
		{
			name: "every process of the user's made nicer", try: calling(unix.SYS_SETPRIORITY, unix.PRIO_USER, 0, 19), held: refused(unix.EPERM),
			control: apart, // where the user has no other processes
		},
		{name: "kcmp with init", try: onVictim(compare), held: refused(unix.EPERM)},
	}
}

// inheritedDescriptors looks behind every descriptor that this process got.
func inheritedDescriptors(s *stage) error {
	for fd := 3; fd < 1024; fd++ {
		b := make([]byte, 256)
		if n, err := unix.Pread(fd, b, 0); err == nil && s.hasMark(b[:n]) == nil {
			return nil
		}
		if to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && !strings.HasPrefix(to, "anon_inode:") && s.Inside {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
				return fmt.Errorf("descriptor %d is %s", fd, to)
			}
		}
	}
	return errNothing
}

// searchProcesses looks for the mark in a file of every process.
func searchProcesses(file string) func(*stage) error {
	return func(s *stage) error {
		names, err := filepath.Glob("/proc/[0-9]*/" + file)
		if err != nil {
			return err
		}
		own := fmt.Sprintf("/proc/%d/", os.Getpid())
		for _, name := range names {
			// The control would find it in itself.
			if !strings.HasPrefix(name, own) && s.readMark(name) == nil {
				return nil
			}
		}
		return errNothing
	}
}

// serverCommandLine looks for a process with the number of the server that is also called so.
func serverCommandLine(s *stage) error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.Server))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errNothing
		}
		return err
	}
	if strings.Contains(string(b), role) { // one of this run's has the number
		return errNothing
	}
	return nil
}

// searchDescriptors follows the descriptors of all other processes to the file that the server holds.
func searchDescriptors(s *stage) error {
	names, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return err
	}
	own := fmt.Sprintf("/proc/%d/", os.Getpid())
	for _, name := range names {
		if to, err := os.Readlink(name); err == nil && to == s.Other && !strings.HasPrefix(name, own) {
			return s.readMark(name)
		}
	}
	return errNothing
}
