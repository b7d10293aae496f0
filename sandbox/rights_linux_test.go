package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asChild is the environment variable that makes a test of the form TestChild… do the child's part.
const asChild = "AIRLOCK_TEST_CHILD"

// childReport is the descriptor that a child reports on.
const childReport = 3

// child prepares this test binary to run one test as a child, in namespaces of its own where every
// capability over them is held, as init is started.
func child(test, argument string, flags uintptr) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = []string{asChild + "=" + argument, "TMPDIR=" + os.TempDir(), "PATH=/usr/bin:/bin"}
	cmd.Stderr = os.Stderr
	if flags != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  flags,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		}
		for c := range uintptr(unix.CAP_LAST_CAP + 1) {
			cmd.SysProcAttr.AmbientCaps = append(cmd.SysProcAttr.AmbientCaps, c)
		}
	}
	return cmd
}

// childArgument is what the parent passed; a TestChild… that was not started by it has nothing to do.
func childArgument(t *testing.T) string {
	argument := os.Getenv(asChild)
	if argument == "" {
		t.Skip("is run by other tests only")
	}
	return argument
}

// runChild runs a child to its end and decodes what it reported.
func runChild(t *testing.T, cmd *exec.Cmd, report any) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		w.Close()
		lacks(t, "userns", err)
		return
	}
	w.Close()
	decodeReport(t, r, report)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("child: %v", err)
	}
}

// decodeReport reads what a child reports, which may go on afterwards.
func decodeReport(t *testing.T, r io.Reader, report any) {
	t.Helper()
	if err := json.NewDecoder(r).Decode(report); err != nil {
		t.Fatalf("child's report: %v", err)
	}
}

func reportToParent(t *testing.T, report any) {
	t.Helper()
	if err := json.NewEncoder(os.NewFile(childReport, "report")).Encode(report); err != nil {
		t.Fatal(err)
	}
}

// probe is a system call with what the kernel says to it without the filter, and with it. The control
// tells that the call exists here and gets past the filter's place: it must not be the errno of the filter.
type probe struct {
	name            string
	control, filter unix.Errno
	call            func() error
}

// raw makes a system call on this thread.
func raw(nr uintptr, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno != 0 {
			return errno
		}
		return nil
	}
}

func socketOf(family, kind, protocol int) func() error {
	return func() error {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

func rightsProbes(dir string) []probe {
	const minusOne = ^uintptr(0)
	nowhere, _ := unix.BytePtrFromString("/nonexistent")
	path := uintptr(unsafe.Pointer(nowhere))
	inNewUTS := func() error {
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{
			Env: []string{}, Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUTS},
		})
		if err == nil {
			_, err = syscall.Wait4(pid, nil, 0, nil)
		}
		return err
	}
	n := 0
	mknod := func(mode uint32) func() error {
		return func() error {
			n++
			return unix.Mknod(filepath.Join(dir, fmt.Sprint("node", n)), mode, 0)
		}
	}
	return []probe{
		{"io_uring_setup", unix.EFAULT, unix.ENOSYS, raw(unix.SYS_IO_URING_SETUP, 1, 0)},
		{"keyctl", unix.EOPNOTSUPP, unix.ENOSYS, raw(unix.SYS_KEYCTL, 1<<30)},
		{"perf_event_open", unix.EFAULT, unix.EPERM, raw(unix.SYS_PERF_EVENT_OPEN, 0)},
		{"kcmp", 0, unix.EPERM, raw(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(os.Getpid()), 1)},
		{"unshare", 0, unix.EPERM, raw(unix.SYS_UNSHARE, unix.CLONE_NEWUTS)},
		{"clone with a namespace", 0, unix.EPERM, inNewUTS},
		{"clone3", unix.EINVAL, unix.ENOSYS, raw(unix.SYS_CLONE3)},
		{"setns", unix.EBADF, unix.EPERM, raw(unix.SYS_SETNS, minusOne)},
		{"mount", unix.ENOENT, unix.EPERM, raw(unix.SYS_MOUNT, path, path, path)},
		{"umount2", unix.ENOENT, unix.EPERM, raw(unix.SYS_UMOUNT2, path)},
		{"chroot", unix.ENOENT, unix.EPERM, raw(unix.SYS_CHROOT, path)},
		{"fsopen", unix.ENODEV, unix.EPERM, raw(unix.SYS_FSOPEN, path)},
		{"open_tree", unix.ENOENT, unix.EPERM, raw(unix.SYS_OPEN_TREE, minusOne, path)},
		{"move_mount", unix.EINVAL, unix.EPERM, raw(unix.SYS_MOVE_MOUNT, minusOne, path, minusOne, path, minusOne)},
		{"mount_setattr", unix.EINVAL, unix.EPERM, raw(unix.SYS_MOUNT_SETATTR, minusOne)},
		{"name_to_handle_at", unix.ENOENT, unix.EPERM, raw(unix.SYS_NAME_TO_HANDLE_AT, minusOne, path)},
		{"sethostname", 0, unix.EPERM, func() error { return unix.Sethostname([]byte("probe")) }},
		{"adjtimex", unix.EFAULT, unix.EPERM, raw(unix.SYS_ADJTIMEX)},
		{"personality READ_IMPLIES_EXEC", 0, unix.EPERM, raw(unix.SYS_PERSONALITY, 0x400000)},
		{"personality 0", 0, 0, raw(unix.SYS_PERSONALITY, 0)},
		{"mknod of a whiteout", 0, unix.EPERM, mknod(unix.S_IFCHR)},
		{"mknod of a FIFO", 0, 0, mknod(unix.S_IFIFO | 0o600)},
		{"mknod of a file", 0, 0, mknod(0o600)},
		{"ioctl TIOCSTI", unix.EBADF, unix.EPERM, raw(unix.SYS_IOCTL, minusOne, unix.TIOCSTI)},
		{"ioctl TIOCSTI with a high bit", unix.EBADF, unix.EPERM, raw(unix.SYS_IOCTL, minusOne, unix.TIOCSTI|1<<32)},
		{"ioctl TIOCLINUX", unix.EBADF, unix.EPERM, raw(unix.SYS_IOCTL, minusOne, unix.TIOCLINUX)},
		{"ioctl TCGETS", unix.EBADF, unix.EBADF, raw(unix.SYS_IOCTL, minusOne, unix.TCGETS)},
		{"ptrace", unix.ESRCH, unix.ESRCH, raw(unix.SYS_PTRACE, unix.PTRACE_DETACH, 1<<30)},
		{"socket UNIX", 0, 0, socketOf(unix.AF_UNIX, unix.SOCK_STREAM, 0)},
		{"socket INET", 0, 0, socketOf(unix.AF_INET, unix.SOCK_STREAM, 0)},
		{"socket INET6", 0, 0, socketOf(unix.AF_INET6, unix.SOCK_DGRAM, 0)},
		{"socket NETLINK ROUTE", 0, 0, socketOf(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)},
		{"socket NETLINK KOBJECT_UEVENT", 0, unix.EPROTONOSUPPORT, socketOf(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT)},
		{"socket VSOCK", 0, unix.EAFNOSUPPORT, socketOf(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
		{"socket PACKET", 0, unix.EAFNOSUPPORT, socketOf(unix.AF_PACKET, unix.SOCK_RAW, 0)},
		{"socket ALG", 0, unix.EAFNOSUPPORT, socketOf(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
	}
}

// rightsReport is what the child saw.
type rightsReport struct {
	Control, Filter map[string]int // errnos of the probes
	Thread          string         // status of the thread that dropped its rights
	Others          []string       // status of threads that were made afterwards
	Program         string         // status of a program that was executed from the thread
}

// TestDropRights asks the kernel, not this package's tables, what a thread without rights may do.
func TestDropRights(t *testing.T) {
	var got rightsReport
	runChild(t, child("TestChildDropRights", t.TempDir(),
		unix.CLONE_NEWUSER|unix.CLONE_NEWUTS|unix.CLONE_NEWNET|unix.CLONE_NEWNS), &got)
	if t.Failed() || got.Control == nil {
		return
	}
	for _, p := range rightsProbes("") {
		control, filter := unix.Errno(got.Control[p.name]), unix.Errno(got.Filter[p.name])
		if control == unix.ENOSYS || control == unix.EAFNOSUPPORT || control == unix.EPROTONOSUPPORT {
			t.Logf("%s: not in this kernel", p.name)
			continue
		}
		if control != p.control {
			t.Errorf("%s without the filter: %s, want %s", p.name, errnoName(control), errnoName(p.control))
		}
		if filter != p.filter {
			t.Errorf("%s with the filter: %s, want %s", p.name, errnoName(filter), errnoName(p.filter))
		}
	}
	for name, status := range map[string]string{"thread": got.Thread, "program": got.Program} {
		for field, want := range map[string]string{
			"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
			"CapBnd": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2",
		} {
			if v := statusField(status, field); v != want {
				t.Errorf("%s of the %s is %q, want %q", field, name, v, want)
			}
		}
	}
	for _, status := range got.Others {
		if v := statusField(status, "Seccomp"); v != "0" {
			t.Errorf("Seccomp of another thread is %q: init would be under the filter", v)
		}
		if v := statusField(status, "CapEff"); v == "0000000000000000" {
			t.Error("another thread has lost its capabilities")
		}
	}
}

func TestChildDropRights(t *testing.T) {
	dir := childArgument(t)
	runtime.LockOSThread() // for good
	probes := rightsProbes(dir)
	run := func() map[string]int {
		out := make(map[string]int)
		for _, p := range probes {
			if err := p.call(); err != nil {
				out[p.name] = int(err.(unix.Errno))
			} else {
				out[p.name] = 0
			}
		}
		return out
	}
	got := rightsReport{Control: run()}
	if err := dropRights(); err != nil {
		t.Fatal(err)
	}
	got.Filter = run()
	got.Thread = threadStatus()
	got.Others = statusOfThreads(8)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := syscall.ForkExec("/bin/cat", []string{"cat", "/proc/self/status"}, &syscall.ProcAttr{
		Files: []uintptr{0, w.Fd(), 2}, Env: []string{},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	b, _ := io.ReadAll(r)
	got.Program = string(b)
	_, _ = syscall.Wait4(pid, nil, 0, nil)
	reportToParent(t, got)
}

// statusOfThreads makes the runtime have n more threads at once, and asks each.
func statusOfThreads(n int) []string {
	status := make(chan string, n)
	release := make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			status <- threadStatus()
			<-release
		}()
	}
	defer close(release)
	var out []string
	for range n {
		out = append(out, <-status)
	}
	return out
}

func threadStatus() string {
	b, _ := os.ReadFile("/proc/thread-self/status")
	return string(b)
}

func statusField(status, field string) string {
	for line := range strings.Lines(status) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func errnoName(e unix.Errno) string {
	if e == 0 {
		return "success"
	}
	return unix.ErrnoName(e)
}
