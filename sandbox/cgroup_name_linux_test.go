package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestCgroupNames(t *testing.T) {
	self, err := selfStamp()
	if err != nil {
		t.Fatal(err)
	}
	name := self.cgroupName(strings.Repeat("r", 300))
	if len(name) > 255 {
		t.Errorf("%d bytes are more than a file name has", len(name))
	}
	if got, ok := parseStamp(name); !ok || got != self {
		t.Errorf("%q is read as %+v, %v, want %+v", name, got, ok, self)
	}
	if name == self.cgroupName(strings.Repeat("r", 300)) {
		t.Error("two names are the same")
	}
	if isServerLeaf(self.cgroupName("server")) || !isServerLeaf(self.leafName()) {
		t.Error("a run is taken for the server's own cgroup, or the other way round")
	}
	for _, bad := range []string{
		"", "airlock", "airlock-", "airlock-1-2-3", "airlock-x-2-3-a", "airlock-0-2-3-a", "airlock-1--2-3-a",
		"airlock-01-2-3-a", "airlock-+1-2-3-a", "xairlock-1-2-3-a", "airlock-99999999999-2-3-a",
	} {
		if s, ok := parseStamp(bad); ok {
			t.Errorf("%q is read as %+v", bad, s)
		}
	}
}

func TestStampDead(t *testing.T) {
	self, err := selfStamp()
	if err != nil {
		t.Fatal(err)
	}
	ended := exec.Command("true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "true is a zombie", func() bool { return isZombie(ended.Process.Pid) })
	zombie, err := readStat(ended.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	isDead := func(s stamp) bool { return s.dead(self.namespace) }
	if isDead(self) {
		t.Error("this process counts as dead")
	}
	if s := (stamp{self.namespace, ended.Process.Pid, zombie.start}); !isDead(s) {
		t.Error("a zombie counts as alive")
	}
	_ = ended.Wait()
	if s := (stamp{self.namespace, ended.Process.Pid, zombie.start}); !isDead(s) {
		t.Error("a process that has ended counts as alive")
	}
	if s := (stamp{self.namespace, self.pid, self.start - 1}); !isDead(s) {
		t.Error("the owner of a PID that was reused counts as alive")
	}
	if s := (stamp{self.namespace + 1, ended.Process.Pid, zombie.start}); isDead(s) {
		t.Error("something is said about another PID namespace")
	}
}

// A program may be called anything, and its name stands in the middle of the line that is read.
func TestReadStatOfOddName(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a) R 1 (b")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sleep, name); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	st, err := readStat(cmd.Process.Pid)
	if err != nil || st.parent != os.Getpid() || st.start == 0 {
		t.Errorf("got %+v, %v", st, err)
	}
}

// What dead servers left goes, with the processes in it; what a living one has stays.
func TestCleanStaleCgroups(t *testing.T) {
	self, err := selfStamp()
	if err != nil {
		t.Fatal(err)
	}
	living := testCgroup(t, Limits{Processes: 20})
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	hs, err := findHierarchies([]string{controllerPids})
	if len(hs) == 0 {
		t.Fatal(err)
	}
	make := func(s stamp) *cgroup {
		c, err := makeCgroup(hs, s.cgroupName("stale"), Limits{Processes: 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.remove() })
		return c
	}
	dead := make(stamp{self.namespace, ended.Process.Pid, 1})
	reused := make(stamp{self.namespace, self.pid, self.start - 1})
	foreign := make(stamp{self.namespace + 1, ended.Process.Pid, 1})

	straggler := exec.Command("sleep", "60")
	if err := straggler.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = straggler.Process.Kill() }()
	if err := dead.add(straggler.Process.Pid); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := cleanStaleCgroups(); err != nil {
		t.Error(err)
	}
	t.Logf("took %v", time.Since(start).Round(100*time.Microsecond))
	assertGone(t, dead)
	assertGone(t, reused)
	for what, c := range map[string]*cgroup{"a living server's": living, "another PID namespace's": foreign} {
		if isGone(c.dirs[0].path) {
			t.Errorf("%s cgroup was removed", what)
		}
	}
	if err := straggler.Wait(); err == nil {
		t.Error("the process in the dead server's cgroup was not killed")
	}
}
