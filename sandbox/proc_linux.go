package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// What of /proc belongs to the host and not to the run's namespaces. A kernel uid 0 owns these files
// whatever capabilities it has, and could else open them: with /proc/sys/kernel/core_pattern it would
// have the host run a program of its choice.
var (
	// readOnlyProc can be read by every user of the host, but not written in here.
	readOnlyProc = []string{
		"bus", "driver", "dynamic_debug", "fs", "irq", "mtrr", "pressure", "sys", "sysrq-trigger", "tty",
	}
	// maskedProc shows the host's memory, keys and other processes to its owner.
	maskedProc = []string{
		"acpi", "asound", "iomem", "ioports", "kallsyms", "kcore", "key-users", "keys", "kmsg",
		"kpagecgroup", "kpagecount", "kpageflags", "latency_stats", "pagetypeinfo", "sched_debug",
		"scsi", "slabinfo", "timer_list", "timer_stats", "vmallocinfo",
	}
)

// mountProc mounts the new /proc and locks what of it is the host's.
func (b *builder) mountProc() error {
	if err := b.mountAt(b.src.proc, "/proc"); err != nil {
		return err
	}
	b.src.proc.Close()
	// The limit belongs to the user namespace of whoever writes it. The seccomp filter refuses new
	// namespaces as well; this holds even where a way around the filter is found.
	if err := writeFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return setupError("forbid user namespaces", "/proc/sys/user/max_user_namespaces", err)
	}
	if err := shareAllowances(); err != nil {
		return err
	}
	for _, name := range readOnlyProc {
		p := "/proc/" + name
		if err := bindReadOnly(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range maskedProc {
		if err := maskInProc("/proc/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// What is locked in /proc is locked by paths, and with mount(2), which is a call for each in place of ten: no path is
// anybody's but the kernel's there, so that no link can lead one away.

// bindReadOnly mounts what is at p on itself, read-only, with all that is below it.
func bindReadOnly(p string) error {
	if err := unix.Mount(p, p, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return setupError(opAttachMount, p, err)
	}
	err := unix.MountSetattr(unix.AT_FDCWD, p, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	return setupError(opMountAttributes, p, err)
}

// maskInProc hides what is at p, a file as a rule.
func maskInProc(p string) error {
	err := unix.Mount(nonePath, p, "", unix.MS_BIND, "")
	if errors.Is(err, unix.ENOTDIR) {
		err = unix.Mount(emptyPath, p, "", unix.MS_BIND, "")
	}
	return setupError(opAttachMount, p, err)
}

// allowances are what the kernel grants a user over all namespaces, by few enough that one program can take them all: the
// names that the limits of a user namespace have, and where the host says how many that is.
var allowances = []struct{ own, host string }{
	{"max_inotify_instances", "fs/inotify/max_user_instances"},
	{"max_inotify_watches", "fs/inotify/max_user_watches"},
	{"max_fanotify_groups", "fs/fanotify/max_user_groups"},
	{"max_fanotify_marks", "fs/fanotify/max_user_marks"},
}

// shareAllowances lets the run have a quarter of each. With all of them it would have the user's editor and desktop
// see no file change while it goes on.
func shareAllowances() error {
	for _, a := range allowances {
		b, err := os.ReadFile("/proc/sys/" + a.host)
		if err != nil {
			continue // a kernel without it
		}
		own := "/proc/sys/user/" + a.own
		share := strconv.FormatInt(max(number(b)/4, 1), 10)
		if err := writeFile(own, []byte(share), 0, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return setupError("share with the user", own, err)
		}
	}
	return nil
}

// writeFile writes content to a file with one call, as what the kernel offers below /proc/sys wants it. It is os.WriteFile
// without what that does for files that can be waited for.
func writeFile(name string, content []byte, flags int, mode uint32) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC|flags, mode)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for len(content) > 0 {
		n, err := unix.Write(fd, content)
		if err != nil && err != unix.EINTR { //nolint:errorlint // never wrapped here
			return err
		}
		if n == 0 && err == nil {
			return io.ErrShortWrite
		}
		content = content[max(n, 0):]
	}
	return nil
}
