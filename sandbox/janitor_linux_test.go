package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func openSelf(t *testing.T) *os.File {
	t.Helper()
	exe, err := sealSelf()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { exe.Close() })
	return exe
}

// janitorReport is what the server that will be killed has made.
type janitorReport struct {
	Lacking string
	Cgroups []string
	Pids    []int // a process that lives in the cgroup; the janitor
}

// The server is killed in the middle of a run whose processes nobody else ends.
func TestJanitorCleansUpAfterKill(t *testing.T) {
	var got janitorReport
	cmd := child("TestChildServer", "killed", 0)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	decodeReport(t, r, &got)
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if got.Lacking != "" {
		lacks(t, "cgroup", got.Lacking)
	}
	for _, dir := range got.Cgroups {
		if pids, err := cgroupPids(dir); err != nil || len(pids) != 1 {
			t.Fatalf("%s holds %v, %v before the kill, want one process", dir, pids, err)
		}
	}
	// A process group's signal does not reach the janitor, whose session is its own.
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGTERM)
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	_ = cmd.Wait()
	killed := time.Now()
	for _, dir := range got.Cgroups {
		for !isGone(dir) {
			if time.Since(killed) > 2*time.Second {
				t.Fatalf("%s is still there", dir)
			}
			time.Sleep(time.Millisecond)
		}
	}
	t.Logf("cgroups gone %v after the kill", time.Since(killed).Round(time.Millisecond))
	for _, pid := range got.Pids {
		for unix.Kill(pid, 0) == nil && !isZombie(pid) {
			if time.Since(killed) > 2*time.Second {
				t.Fatalf("process %d is still there", pid)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func isGone(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, os.ErrNotExist)
}

// isZombie is true for a process that only waits for its parent to take note: where these tests run in a
// container, process 1 may not do that for orphans.
func isZombie(pid int) bool {
	st, err := readStat(pid)
	return err == nil && st.state == 'Z'
}

// TestChildServer is a server with a run. It waits to be killed.
func TestChildServer(t *testing.T) {
	childArgument(t)
	group, err := newCgroup("run", Limits{Processes: 20, Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if group == nil {
		reportToParent(t, janitorReport{Lacking: "no cgroup"})
		return
	}
	j, err := startJanitor(openSelf(t))
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command("sleep", "60")
	run.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	if err := group.add(run.Process.Pid); err != nil {
		t.Fatal(err)
	}
	report := janitorReport{Pids: []int{run.Process.Pid, j.cmd.Process.Pid}}
	for _, d := range group.dirs {
		report.Cgroups = append(report.Cgroups, d.path)
	}
	reportToParent(t, report)
	time.Sleep(30 * time.Second)
}

func TestJanitorOfAServerThatCloses(t *testing.T) {
	t.Setenv("AIRLOCK_TEST_SECRET", "x")
	// What the server was itself started with and does not know of is not passed on.
	leaked, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaked)
	j, err := startJanitor(openSelf(t))
	if err != nil {
		t.Fatal(err)
	}
	if j == nil {
		lacks(t, "cgroup", "none can be made")
	}
	pid := j.cmd.Process.Pid
	waitUntil(t, "the janitor is set up", func() bool { return len(descriptors(pid)) > 0 && !hasDescriptor(pid, "/") })
	holdsNothing(t, pid)
	if cmdline, _ := os.ReadFile(procFile(pid, "cmdline")); string(cmdline) != janitorName+"\x00" {
		t.Errorf("the janitor's command line is %q", cmdline)
	}
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("the janitor's session is %d, %v, want its own", sid, err)
	}
	if err := unix.Kill(pid, unix.SIGTERM); err != nil { // of a service manager that stops a whole service
		t.Fatal(err)
	}
	// Another backend of this process may have a run that goes on.
	group := testCgroup(t, Limits{Processes: 20})
	if err := j.close(); err != nil {
		t.Error(err)
	}
	if isGone(group.dirs[0].path) {
		t.Error("a janitor that was dismissed has removed a cgroup")
	}
	if err := unix.Kill(pid, 0); err != unix.ESRCH {
		t.Errorf("the janitor is still there: %v", err)
	}
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", itoa(pid), name)
}

// holdsNothing checks that a process of a role has nothing of its server's but one end of a socket.
func holdsNothing(t *testing.T, pid int) {
	t.Helper()
	for fd, target := range descriptors(pid) {
		switch {
		case target == "/dev/null" && (fd == "0" || fd == "1" || fd == "2"):
		case fd == "3" && strings.HasPrefix(target, "socket:"):
		case strings.HasPrefix(target, "anon_inode:"), strings.HasPrefix(filepath.Base(target), "cpu."):
			// The Go runtime's own: for polling, and to learn how many CPUs it may use.
		default:
			t.Errorf("process %d holds descriptor %s, %s", pid, fd, target)
		}
	}
	if env, err := os.ReadFile(procFile(pid, "environ")); err != nil || string(env) != strings.Join(initEnv, "\x00")+"\x00" {
		t.Errorf("the environment of process %d is %q, %v", pid, env, err)
	}
}

func descriptors(pid int) map[string]string {
	out := make(map[string]string)
	dir := procFile(pid, "fd")
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			out[e.Name()] = target
		}
	}
	return out
}

func hasDescriptor(pid int, target string) bool {
	for _, v := range descriptors(pid) {
		if v == target {
			return true
		}
	}
	return false
}

func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came to be that %s", what)
		}
	}
}

// An order that names no server would have everything removed.
func TestJanitorRefusesOrders(t *testing.T) {
	for _, order := range []string{
		``, `{}`, `{"prefix":""}`, `{"prefix":"airlock-"}`, `{"prefix":"airlock-1-2-"}`, `{"prefix":"airlock-1-2-3"}`,
		`{"prefix":"airlock-1-2-3-x"}`, `{"prefix":"airlock-1-2-3-","more":1}`, `[]`,
	} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Write(pair[0], []byte(order)); err != nil {
			t.Fatal(err)
		}
		unix.Close(pair[0])
		if got, err := receiveOrder(pair[1]); err == nil {
			t.Errorf("%s was taken as %+v", order, got)
		}
		unix.Close(pair[1])
	}
}
