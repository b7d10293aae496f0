package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// wallProbes are what a thread tries outside of the wall and inside. dir is writable, beside is not, and it was
// reached from outside what the wall is built of.
func wallProbes(dir, beside, abstract string) []probe {
	file := func(name string, flags int) func() error {
		return func() error {
			fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0o600)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}
	}
	there := func(name string) string { return filepath.Join(dir, name) }
	return []probe{
		{"read beside", 0, 0, file(beside+"/file", unix.O_RDONLY)},
		{"write beside", 0, unix.EACCES, file(beside+"/file", unix.O_WRONLY)},
		{"truncate beside", 0, unix.EACCES, func() error { return unix.Truncate(beside+"/file", 0) }},
		{"make beside", 0, unix.EACCES, file(beside+"/new", unix.O_CREAT|unix.O_WRONLY)},
		{"make a directory beside", 0, unix.EACCES, func() error {
			if err := unix.Mkdir(beside+"/made", 0o700); err != nil {
				return err
			}
			return unix.Rmdir(beside + "/made")
		}},
		{"remove beside", 0, unix.EACCES, func() error { return unix.Rmdir(beside + "/dir") }},
		{"write", 0, 0, file(there("new"), unix.O_CREAT|unix.O_TRUNC|unix.O_RDWR)},
		{"truncate", 0, 0, func() error { return unix.Truncate(there("new"), 0) }},
		{"make a directory", 0, 0, func() error { return unix.Mkdir(there("from"), 0o700) }},
		{"make another", 0, 0, func() error { return unix.Mkdir(there("to"), 0o700) }},
		{"write in it", 0, 0, file(there("from/f"), unix.O_CREAT|unix.O_RDWR)},
		{"link across directories", 0, 0, func() error { return unix.Link(there("from/f"), there("to/link")) }},
		{"rename across directories", 0, 0, func() error { return unix.Rename(there("from/f"), there("to/f")) }},
		{"rename of a directory across directories", 0, 0, func() error { return unix.Rename(there("from"), there("to/from")) }},
		{"remove", 0, 0, func() error { return os.RemoveAll(there("to")) }},
		{"write to a process's own file in /proc", 0, 0, file("/proc/self/comm", unix.O_WRONLY|unix.O_TRUNC)},
		{"write to /dev/null", 0, 0, file("/dev/null", unix.O_RDWR|unix.O_TRUNC)},
		{"abstract socket from outside", 0, unix.EPERM, func() error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Connect(fd, &unix.SockaddrUnix{Name: abstract})
		}},
		{"signal to the outside", 0, unix.EPERM, func() error { return unix.Kill(os.Getppid(), 0) }},
	}
}

// The wall holds by itself: here nothing stands before it.
func TestWall(t *testing.T) {
	if landlockABI() < 6 {
		lacks(t, "landlock", "this kernel has none, or not the version that scopes signals")
	}
	dir, beside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(beside, "file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	abstract := "@" + mark(t)
	l, err := net.Listen("unix", abstract)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := child("TestChildWall", dir, 0)
	cmd.Env = append(cmd.Env, "BESIDE="+beside, "ABSTRACT="+abstract)
	var got map[string][2]int
	runChild(t, cmd, &got)
	for _, p := range wallProbes("", "", "") {
		e, ok := got[p.name]
		if control := unix.Errno(e[0]); !ok || control != p.control {
			t.Errorf("%s without the wall: %s, want %s", p.name, errnoName(control), errnoName(p.control))
		}
		if inside := unix.Errno(e[1]); inside != p.filter {
			t.Errorf("%s behind the wall: %s, want %s", p.name, errnoName(inside), errnoName(p.filter))
		}
	}
	if b, err := os.ReadFile(filepath.Join(beside, "new")); err != nil || len(b) > 0 {
		t.Errorf("control: what was made without the wall holds %q (%v)", b, err)
	}
}

func TestChildWall(t *testing.T) {
	dir := childArgument(t)
	runtime.LockOSThread() // for good
	probes := wallProbes(dir, os.Getenv("BESIDE"), os.Getenv("ABSTRACT"))
	got := make(map[string][2]int)
	try := func(which int) {
		for _, p := range probes {
			e := got[p.name]
			e[which] = int(errnoOf(p.call()))
			got[p.name] = e
		}
	}
	toBeRemoved := filepath.Join(os.Getenv("BESIDE"), "dir")
	for which := range 2 {
		if err := unix.Mkdir(toBeRemoved, 0o700); err != nil {
			t.Fatal(err)
		}
		if which == 0 {
			try(0)
		}
	}
	w, err := newWall()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.add([]step{{Do: doBind, Target: wire(dir), Writable: true}, {Do: doBind, Target: "/usr"}, {Do: doBind, Target: "/no/such"}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.enclose(); err != nil {
		t.Fatal(err)
	}
	try(1)
	reportToParent(t, got)
}

// A kernel is asked only for what its version knows: it refuses the rest, all of it.
func TestHandledByVersion(t *testing.T) {
	for abi, want := range map[int]unix.LandlockRulesetAttr{
		2: {Handled_access_fs: 0x3fff},
		3: {Handled_access_fs: 0x7fff},
		5: {Handled_access_fs: 0xffff},
		6: {Handled_access_fs: 0xffff, Scoped: 3},
		9: {Handled_access_fs: 0x1ffff, Scoped: 3},
	} {
		if got := handledBy(abi); got != want {
			t.Errorf("version %d: %+v, want %+v", abi, got, want)
		}
	}
}

func init() {
	// Only the thread of init that forked the payload is behind the wall with it: the others can't be signalled.
	roles["signal-threads-of-init"] = func([]string) {
		tasks, err := os.ReadDir("/proc/1/task")
		if err != nil {
			fmt.Println(err)
			return
		}
		refused := 0
		for _, task := range tasks {
			tid, _ := strconv.Atoi(task.Name())
			if unix.Tgkill(1, tid, 0) == unix.EPERM {
				refused++
			}
		}
		fmt.Println(len(tasks)-refused, "of", len(tasks) > 1)
	}
}

// A payload is behind the wall where the kernel has one.
func TestRunIsBehindTheWall(t *testing.T) {
	if landlockABI() < 6 {
		lacks(t, "landlock", "this kernel has none, or not the version that scopes signals")
	}
	if _, out := doRun(t, newNative(t), testSpec(t, "/probe", "signal-threads-of-init"), ""); out != "1 of true\n" {
		t.Errorf("of init's threads could be signalled: %q", out)
	}
}

// So is a shell that was started ahead, and not even one of init's threads with it.
func TestShellAheadIsBehindTheWall(t *testing.T) {
	NeedsShellAhead(t)
	if landlockABI() < 6 {
		lacks(t, "landlock", "this kernel has none, or not the version that scopes signals")
	}
	spec := bashSpec(t, StartedAhead+" && exec /probe signal-threads-of-init")
	if _, out := doAhead(t, isolating(newNative(t)), spec, spec); out != "0 of true\n" {
		t.Errorf("of init's threads could be signalled: %q", out)
	}
}
