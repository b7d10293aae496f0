package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// testCgroup makes a cgroup that holds the given limits, as for a run that has begun, and is removed after the test.
func testCgroup(t *testing.T, l Limits) *cgroup {
	t.Helper()
	c, err := newCgroup("test", l)
	if err != nil {
		t.Fatal(err)
	}
	if c == nil {
		_, why := findHierarchies(wantedControllers(l))
		lacks(t, "cgroup", why)
	}
	c.begin(l)
	if got, want := len(wantedControllers(l)), len(c.controllers()); got != want {
		lacks(t, "cgroup", fmt.Sprintf("holds only %v", c.controllers()))
	}
	t.Cleanup(func() {
		if err := c.remove(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *cgroup) controllers() []string {
	var out []string
	for _, d := range c.dirs {
		out = append(out, d.controllers...)
	}
	return out
}

// confined is a child in PID and user namespaces of its own that does nothing before go is called. It
// is the first process there, so that with it everything that it started is gone.
type confined struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

func startConfined(t *testing.T, test, argument string, uid int) *confined {
	t.Helper()
	cmd := child(test, argument, unix.CLONE_NEWUSER|unix.CLONE_NEWPID)
	if uid != os.Geteuid() {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappingsEnableSetgroups = true
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid), Groups: []uint32{}}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{w}
	err = cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		lacks(t, "userns", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		r.Close()
	})
	return &confined{cmd, in, r}
}

func (c *confined) release() { c.in.Close() }

// waitReleased is the child's side: it returns when the parent has called release.
func waitReleased() { _, _ = io.Copy(io.Discard, os.Stdin) }

// manyForks is how many processes the children below try to make. It is a number that does no harm
// where no limit holds it, which the control relies on.
const manyForks = 300

func TestProcessLimit(t *testing.T) {
	const limit = 64
	t.Run("control: without a limit", func(t *testing.T) {
		c := startConfined(t, "TestChildForks", "0", os.Geteuid())
		c.release()
		if n := forksOf(t, c); n != manyForks {
			t.Errorf("%d forks, want %d", n, manyForks)
		}
	})
	t.Run("cgroup", func(t *testing.T) {
		group := testCgroup(t, Limits{Processes: limit})
		c := startConfined(t, "TestChildForks", "0", os.Geteuid())
		if err := group.add(c.cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		if what, _ := group.reached(); what != "" {
			t.Errorf("reached() is %q before anything happened", what)
		}
		c.release()
		n := forksOf(t, c)
		t.Logf("%d forks", n)
		if n < limit-20 || n > limit+initHeadroom {
			t.Errorf("%d forks, want about %d", n, limit)
		}
		// The child is at its limit and stays there. The host is not.
		if out, err := exec.Command("true").CombinedOutput(); err != nil {
			t.Errorf("fork outside of the cgroup: %v %s", err, out)
		}
		if what, ended := group.reached(); what != "processes" || ended {
			t.Errorf("reached() is %q, %v, want processes, false", what, ended)
		}
		// It removes a cgroup that is full of processes.
		start := time.Now()
		if err := group.remove(); err != nil {
			t.Error(err)
		}
		t.Logf("removed in %v", time.Since(start).Round(time.Millisecond))
		assertGone(t, group)
		if err := c.cmd.Wait(); err == nil {
			t.Error("the child outlived its cgroup")
		}
	})
	t.Run("rlimit", func(t *testing.T) {
		uid := os.Geteuid()
		if uid == 0 {
			uid = 65534 // a kernel uid 0 isn't bound
		}
		c := startConfined(t, "TestChildForks", fmt.Sprint(limit), uid)
		c.release()
		n := forksOf(t, c)
		t.Logf("%d forks", n)
		if n < limit-20 || n > limit {
			t.Errorf("%d forks, want about %d", n, limit)
		}
	})
}

// forksOf reads how many forks the child could make.
func forksOf(t *testing.T, c *confined) (n int) {
	t.Helper()
	if _, err := fmt.Fscan(c.out, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestChildForks makes processes until there are manyForks or the kernel says no, and keeps them.
func TestChildForks(t *testing.T) {
	var limit int
	if _, err := fmt.Sscan(childArgument(t), &limit); err != nil {
		t.Fatal(err)
	}
	waitReleased()
	if limit > 0 {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		if err := setRlimits(0, Limits{Processes: limit}, len(tasks)); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for ; n < manyForks; n++ {
		_, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "60"}, &syscall.ProcAttr{Env: []string{}})
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintln(os.NewFile(childReport, "report"), n)
	if limit == 0 && n < manyForks {
		time.Sleep(10 * time.Second) // the parent looks, and kills
	}
}

// A run is over when a process of it was killed for its memory, also where the kernel kills only that one.
func TestMemoryLimit(t *testing.T) {
	const limit = 64 << 20
	hog := func(t *testing.T, group *cgroup, bytes int) error {
		c := startConfined(t, "TestChildMemory", fmt.Sprint(bytes), os.Geteuid())
		if group != nil {
			if err := group.add(c.cmd.Process.Pid); err != nil {
				t.Fatal(err)
			}
		}
		c.release()
		if out, _ := io.ReadAll(c.out); strings.Contains(string(out), "all of it") {
			return nil
		}
		return c.cmd.Wait()
	}
	t.Run("control: without a limit", func(t *testing.T) {
		if err := hog(t, nil, 4*limit); err != nil {
			t.Error(err)
		}
	})
	t.Run("control: below the limit", func(t *testing.T) {
		group := testCgroup(t, Limits{Memory: limit})
		if err := hog(t, group, limit/2); err != nil {
			t.Error(err)
		}
		if what, _ := group.reached(); what != "" {
			t.Errorf("reached() is %q", what)
		}
	})
	t.Run("above the limit", func(t *testing.T) {
		group := testCgroup(t, Limits{Memory: limit, Processes: 100})
		start := time.Now()
		err := hog(t, group, 4*limit)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
			t.Fatalf("the first process, which used little, ended with %v, want a signal", err)
		}
		t.Logf("ended after %v", time.Since(start).Round(time.Millisecond))
		if what, ended := group.reached(); what != "memory" || !ended {
			t.Errorf("reached() is %q, %v, want memory, true", what, ended)
		}
		if err := group.remove(); err != nil {
			t.Error(err)
		}
		assertGone(t, group)
	})
}

// TestChildMemory starts a process that uses so many bytes, and goes on after that was killed.
func TestChildMemory(t *testing.T) {
	argument := childArgument(t)
	if bytes, ok := strings.CutPrefix(argument, "hog "); ok {
		var n int
		if _, err := fmt.Sscan(bytes, &n); err != nil {
			t.Fatal(err)
		}
		b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < n; i += 4096 {
			b[i] = 1
		}
		return
	}
	waitReleased()
	if err := child("TestChildMemory", "hog "+argument, 0).Run(); err == nil {
		fmt.Fprintln(os.NewFile(childReport, "report"), "all of it")
		return
	}
	time.Sleep(10 * time.Second)
}

func assertGone(t *testing.T, c *cgroup) {
	t.Helper()
	for _, d := range c.dirs {
		if _, err := os.Stat(d.path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", d.path, err)
		}
	}
}

func TestCgroupHeld(t *testing.T) {
	held := cgroupHeld(Limits{})
	t.Log(held)
	if held["processes"] == "" {
		lacks(t, "cgroup", "nothing holds the number of processes")
	}
	if left := ownCgroups(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCPULimit(t *testing.T) {
	group := testCgroup(t, Limits{CPU: 0.5})
	file, want := "cpu.max", "50000 100000"
	if group.dirs[0].version == 1 {
		file, want = "cpu.cfs_quota_us", "50000"
	}
	b, err := os.ReadFile(filepath.Join(group.dirs[0].path, file))
	if err != nil || strings.TrimSpace(string(b)) != want {
		t.Errorf("%s is %q, %v, want %q", file, b, err, want)
	}
}

// Nothing is made where no limit asks for it.
func TestNoCgroupWithoutLimits(t *testing.T) {
	if c, err := newCgroup("test", Limits{Files: 10, Disk: 10}); c != nil || err != nil {
		t.Errorf("got %v, %v", c, err)
	}
}

// ownCgroups are the cgroups that this process has made and that are still there.
func ownCgroups(t *testing.T) []string {
	t.Helper()
	self, err := selfStamp()
	if err != nil {
		t.Fatal(err)
	}
	hs, _ := findHierarchies([]string{controllerPids, controllerMemory, controllerCPU})
	var out []string
	for _, h := range hs {
		for _, dir := range childCgroups(h.base) {
			if strings.HasPrefix(filepath.Base(dir), self.prefix()) {
				out = append(out, dir)
			}
		}
	}
	return out
}

// BenchmarkCgroup is what a cgroup adds to a run.
func BenchmarkCgroup(b *testing.B) {
	for b.Loop() {
		c, err := newCgroup("bench", Limits{Processes: 100, Memory: 1 << 30})
		if err != nil {
			b.Fatal(err)
		}
		if c == nil {
			b.Skip("no cgroup can be made")
		}
		if err := c.remove(); err != nil {
			b.Fatal(err)
		}
	}
}
