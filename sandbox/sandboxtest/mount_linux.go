package sandboxtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mountProbes try to change what the run sees. Their controls are made apart, where all of it may be done.
func mountProbes() []probe {
	table := []probe{
		{name: "mount", try: func(*stage) error { return unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") }},
		{name: "mount of /proc", try: func(*stage) error { return unix.Mount("proc", "/proc", "proc", 0, "") }},
		{name: "bind mount", try: func(s *stage) error { return unix.Mount(s.Writable, s.Shown, "", unix.MS_BIND, "") }},
		{name: "move of a mount", try: moveMount},
		{name: "remount for writing", try: remount},
		{name: "mount_setattr", try: func(s *stage) error {
			if !s.Inside {
				if err := unix.Mount(s.Shown, s.Shown, "", unix.MS_BIND, ""); err != nil {
					return err
				}
			}
			return unix.MountSetattr(unix.AT_FDCWD, s.Shown, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}},
		{name: "umount of a mask", try: func(s *stage) error { return unix.Unmount(s.masked(), unix.MNT_DETACH) }},
		{name: "pivot_root", try: pivotRoot},
		{name: "chroot", try: func(*stage) error { return unix.Chroot("/") }},
		{name: "fsopen", try: func(*stage) error { return closing(unix.Fsopen("tmpfs", 0)) }},
		{name: "open_tree", try: func(s *stage) error { return closing(unix.OpenTree(unix.AT_FDCWD, s.Shown, unix.OPEN_TREE_CLONE)) }},
		{name: "move_mount", try: calling(unix.SYS_MOVE_MOUNT, minusOne, emptyPath(), minusOne, emptyPath(), 0), beyond: refused(unix.ENOENT, unix.EBADF)},
		{name: "fspick", try: func(*stage) error { return closing(unix.Fspick(unix.AT_FDCWD, "/proc", 0)) }},
		{name: "fsmount", try: calling(unix.SYS_FSMOUNT, minusOne, 0, 0), beyond: refused(unix.EBADF)},
		{name: "fsconfig", try: calling(unix.SYS_FSCONFIG, minusOne, 0, 0, 0, 0), beyond: refused(unix.EBADF, unix.EINVAL, unix.EOPNOTSUPP)},
		{name: "quotactl", try: calling(unix.SYS_QUOTACTL, 0, 0, 0, 0), beyond: refused(unix.EFAULT, unix.ENODEV, unix.ENOTBLK, unix.EINVAL, unix.ENOSYS)},
	}
	for i := range table {
		table[i].held, table[i].control = refused(unix.EPERM), apart
	}
	return table
}

func closing(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func emptyPath() uintptr { return uintptr(unsafe.Pointer(&empty[0])) }

var empty [1]byte

// masked is something that a mount hides. Apart, it is /proc itself.
func (s *stage) masked() string {
	if s.Inside {
		return filepath.Join(s.Shown, "hidden")
	}
	return "/proc"
}

func moveMount(s *stage) error {
	if s.Inside {
		return unix.Mount(s.Writable, s.Alias, "", unix.MS_MOVE, "")
	}
	if err := unix.Mount(s.Writable, s.Writable, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Mount(s.Writable, "/tmp", "", unix.MS_MOVE, "")
}

func remount(s *stage) error {
	if !s.Inside {
		if err := unix.Mount(s.Shown, s.Shown, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return unix.Mount("", s.Shown, "", unix.MS_REMOUNT|unix.MS_BIND, "")
}

func pivotRoot(s *stage) error {
	if !s.Inside {
		if err := unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""); err != nil {
			return err
		}
	}
	if err := unix.Chdir("/tmp"); err != nil {
		return err
	}
	return unix.PivotRoot(".", ".")
}

// kinds are the namespaces that there are.
var kinds = []struct {
	name string // in /proc/self/ns
	flag uintptr
}{
	{"user", unix.CLONE_NEWUSER},
	{"mnt", unix.CLONE_NEWNS},
	{"pid", unix.CLONE_NEWPID},
	{"net", unix.CLONE_NEWNET},
	{"ipc", unix.CLONE_NEWIPC},
	{"uts", unix.CLONE_NEWUTS},
	{"cgroup", unix.CLONE_NEWCGROUP},
	{"time", unix.CLONE_NEWTIME},
}

// namespaceProbes try to get into other namespaces, where a run would have rights.
func namespaceProbes() []probe {
	var table []probe
	for _, k := range kinds {
		table = append(table, probe{
			name: "unshare " + k.name, held: refused(unix.EPERM), control: apart,
			try: func(*stage) error {
				// In a process with one thread, which a new user namespace wants.
				return nothing(&syscall.SysProcAttr{Unshareflags: k.flag})
			},
		}, probe{
			// A thread may enter the namespace that it is in, except the user namespace, and except a mount
			// namespace if it shares its root directory with other threads.
			name: "setns " + k.name, held: refused(unix.EPERM), control: apart, beyond: refused(unix.EINVAL, unix.EUSERS),
			try: func(*stage) error {
				runtime.LockOSThread()
				if err := unix.Unshare(unix.CLONE_FS); err != nil {
					return err
				}
				fd, err := unix.Open("/proc/self/ns/"+k.name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					return err
				}
				return unix.Setns(fd, int(k.flag))
			},
		})
		if k.name == "time" {
			continue // its flag is not one of clone's
		}
		table = append(table, probe{
			name: "clone " + k.name, held: refused(unix.EPERM), control: apart,
			try: func(*stage) error {
				return nothing(&syscall.SysProcAttr{Cloneflags: k.flag})
			},
		})
	}
	return append(
		table,
		probe{name: "clone3", try: calling(unix.SYS_CLONE3, 0, 0), held: refused(unix.ENOSYS), control: onHost, beyond: refused(unix.EINVAL)},
		probe{name: "namespace of the host by a process's number", try: hostNamespace, held: refused(errNothing, unix.EACCES), control: onHost},
		probe{name: "nested user namespace, mount over, open descriptor", try: exploitChain, held: refused(unix.EPERM)},
		probe{name: "nested user namespace by unshare, and a map", try: unshareAndMap, held: refused(unix.EPERM)},
		probe{
			name: "/proc/self/timens_offsets", try: func(*stage) error { return write1("/proc/self/timens_offsets", "monotonic 1 0") }, held: refused(unix.EPERM, unix.EACCES),
			control: nowhere, why: "it can be written only between unshare and the first process in a time namespace",
		},
	)
}

// hostNamespace looks for a namespace that is not this process's own.
func hostNamespace(s *stage) error {
	own, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return err
	}
	names, err := filepath.Glob("/proc/[0-9]*/ns/user")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !s.Inside && open(name, unix.O_RDONLY) == nil {
			return nil
		}
		if to, err := os.Readlink(name); err == nil && to != own {
			return open(name, unix.O_RDONLY)
		}
	}
	return errNothing
}

// exploitChain is how a run could undo a mask if it had user namespaces: open the directory that holds it, make a user and a
// mount namespace with every capability over them, mount something over the directory so that the mount that
// hides the file is out of the way, and go in by the descriptor.
func exploitChain(s *stage) error {
	dir, err := os.Open(s.Shown)
	if err != nil {
		return err
	}
	defer dir.Close()
	return s.step("mount over", func(cmd *exec.Cmd) {
		cmd.ExtraFiles = []*os.File{dir}
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
	})
}

// mountOver is the part of exploitChain in the new namespaces. Descriptor 3 is the directory.
func mountOver(s *stage) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", s.Shown, "tmpfs", 0, ""); err != nil {
		return err
	}
	return s.readMark("/proc/self/fd/3/hidden")
}

// unshareAndMap makes a user namespace by unshare(2), whose maps the new root writes by itself.
func unshareAndMap(*stage) error {
	return nothing(&syscall.SysProcAttr{
		Unshareflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	})
}

// nothing starts a process that does nothing, with attr.
func nothing(attr *syscall.SysProcAttr) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = attr
	return cmd.Run()
}
