package sandboxtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// writeProbes try to change something beside the workspace. Their controls write to the same files, as far as this
// user may.
func writeProbes() []probe {
	probes := []probe{
		{name: "write to a secret", try: func(s *stage) error { return open(s.Secret, unix.O_WRONLY) }, held: refused(unix.ENOENT)},
		{name: "write to another workspace", try: func(s *stage) error { return open(s.Other, unix.O_WRONLY) }, held: refused(unix.ENOENT)},
		{name: "write through a link in the workspace", try: func(s *stage) error { return open(inWorkspace("link-to-secret")(s), unix.O_WRONLY) }, held: refused(unix.ENOENT)},
		{name: "write to what is shown", try: func(s *stage) error { return open(inShown("file")(s), unix.O_WRONLY) }, held: refused(unix.EROFS)},
		{name: "make a file in what is shown", try: func(s *stage) error { return make1(s.Shown) }, held: refused(unix.EROFS)},
		{name: "remove what is shown", try: removeShown, held: refused(unix.EROFS)},
		{name: "change the mode of what is shown", try: func(s *stage) error { return unix.Chmod(inShown("file")(s), 0o600) }, held: refused(unix.EROFS)},
		{name: "change the times of what is shown", try: func(s *stage) error { return unix.Utimes(inShown("file")(s), nil) }, held: refused(unix.EROFS)},
		{name: "give what is shown an attribute", try: func(s *stage) error { return unix.Setxattr(inShown("file")(s), "user.x", []byte("x"), 0) }, held: refused(unix.EROFS)},
		{name: "change the mode of a device", try: func(*stage) error { return unix.Chmod(os.DevNull, 0o666) }, held: refused(unix.EROFS, unix.EPERM), control: asRoot},
		{name: "change the times of what the run's descriptors lead to", try: touchDescriptors, held: refused(unix.EROFS)},
		{name: "lease on what is shown", try: leaseShown, held: refused(unix.EINVAL)},
		{name: "write to the list of users", try: opens("/etc/passwd", unix.O_WRONLY|unix.O_APPEND), held: refused(unix.EROFS, unix.EACCES), control: asRoot},
		{name: "write through /proc/self/fd", try: writeThroughDescriptor, held: refused(unix.EROFS)},
		{
			name: "write to the binary of this process", try: writeToOwnBinary, held: refused(unix.EROFS, unix.ETXTBSY, unix.EACCES), beyond: refused(unix.ETXTBSY),
			absent: refused(unix.EACCES), why: "the binary of the test is another user's",
		},
		{name: "anything of the host's in /proc", try: writableProc, held: refused(errNothing), control: asRoot},
		{name: "core_pattern", try: opens("/proc/sys/kernel/core_pattern", unix.O_WRONLY), held: refused(unix.EROFS, unix.EACCES), control: asRoot},
		{
			name: "sysrq-trigger", try: opens("/proc/sysrq-trigger", unix.O_WRONLY), held: refused(unix.EROFS, unix.EACCES, unix.ENOENT), control: asRoot,
			absent: refused(unix.ENOENT), why: "this kernel was built without it",
		},
		{
			name: "ptrace_scope", try: opens("/proc/sys/kernel/yama/ptrace_scope", unix.O_WRONLY), held: refused(unix.EROFS, unix.EACCES, unix.ENOENT), control: asRoot,
			absent: refused(unix.ENOENT), why: "this kernel was built without Yama",
		},
		{name: "limit on user namespaces", try: opens("/proc/sys/user/max_user_namespaces", unix.O_WRONLY), held: refused(unix.EROFS, unix.EACCES), control: apart},
		{name: "network settings", try: opens("/proc/sys/net/ipv4/ip_unprivileged_port_start", unix.O_WRONLY), held: refused(unix.EROFS, unix.EACCES), control: apart},
		{
			name: "map of its own user namespace", try: func(*stage) error { return write1("/proc/self/uid_map", "0 0 1") }, held: refused(unix.EPERM),
			control: nowhere, why: "a map is written once, and that of a process without one is tried in nested user namespaces",
		},
		{
			name: "setgroups of its user namespace", try: func(*stage) error { return write1("/proc/self/setgroups", "allow") }, held: refused(unix.EPERM, unix.EACCES),
			control: nowhere, why: "nobody may: once there is a map the file takes no more",
		},
		{name: "sysfs for writing", try: opens("/sys/kernel/mm/transparent_hugepage/enabled", unix.O_WRONLY), held: refused(unix.ENOENT), control: asRoot},
		{name: "cgroup files", try: cgroupFiles, held: refused(errNothing), control: asRoot},
		{
			name: "score for the OOM killer", try: func(*stage) error { return write1("/proc/self/oom_score_adj", "-900") }, held: refused(unix.EACCES), control: asRoot,
			absent: refused(unix.EACCES), why: "this host's root has no CAP_SYS_RESOURCE",
		},
	}
	for _, dir := range []string{"/", "/usr", "/etc", "/dev", "/usr/bin"} {
		probes = append(probes, probe{
			name: "make a file in " + dir, try: func(*stage) error { return make1(dir) },
			held: refused(unix.EROFS), control: asRoot,
		})
	}
	return probes
}

// make1 makes a file in dir, and removes it.
func make1(dir string) error {
	f, err := os.CreateTemp(dir, ".sandboxtest-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	return f.Close()
}

// write1 writes to a file that exists in one call.
func write1(name, content string) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(content))
	return err
}

func removeShown(s *stage) error {
	name := filepath.Join(s.Shown, "to-be-removed")
	if !s.Inside {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			return err
		}
		return unix.Unlink(name)
	}
	return unix.Unlink(inShown("file")(s))
}

// writeThroughDescriptor opens a file again, for writing, by the descriptor that it was opened for reading with.
func writeThroughDescriptor(s *stage) error {
	fd, err := unix.Open(inShown("file")(s), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR)
}

func writeToOwnBinary(*stage) error { return open("/proc/self/exe", unix.O_WRONLY) }

// writableProc looks for what in /proc can be opened for writing and is not a process's own.
func writableProc(s *stage) error {
	found := errNothing
	_ = filepath.WalkDir("/proc", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && filepath.Dir(p) == "/proc" && strings.Trim(filepath.Base(p), "0123456789") == "":
			return fs.SkipDir
		case d.Type().IsRegular() && open(p, unix.O_WRONLY) == nil:
			found = nil
			if s.Inside {
				found = fmt.Errorf("%s can be written", p)
			}
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// cgroupFiles looks for a file of a cgroup, wherever one is mounted.
func cgroupFiles(*stage) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if before, after, ok := strings.Cut(line, " - cgroup"); ok && after != "" {
			if open(filepath.Join(strings.Fields(before)[4], "cgroup.procs"), unix.O_WRONLY) == nil {
				return nil
			}
		}
	}
	if open("/sys/fs/cgroup/cgroup.procs", unix.O_WRONLY) == nil {
		return nil
	}
	return errNothing
}

// touchDescriptors changes the times of the files that the run was started with, which are open by whatever mount they
// were opened through. Pipes are the run's own.
func touchDescriptors(s *stage) error {
	if !s.Inside {
		f, err := os.Open(s.Tmp)
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Utimes(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), nil)
	}
	for fd := range 3 {
		name := fmt.Sprintf("/proc/%d/fd/%d", os.Getppid(), fd)
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFIFO {
			continue
		}
		if err := unix.Utimes(name, nil); err != unix.EROFS {
			return err
		}
	}
	return unix.EROFS
}

// leaseShown asks for the kind of lock that has others wait who open the file.
func leaseShown(s *stage) error {
	f, err := os.Open(inShown("file")(s))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return err
}
