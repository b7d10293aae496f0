package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// v2Top finds a version 2 hierarchy that has a controller to pass on, whichever: the rules of the tree
// are the same for all, and on a host where version 1 has pids and memory there are only others.
func v2Top(t *testing.T) (top, controller string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range parseCgroupMounts(string(b)) {
		if m.version != 2 {
			continue
		}
		controllers, err := readControllers(filepath.Join(m.dir, "cgroup.controllers"))
		if err != nil || len(controllers) == 0 {
			lacks(t, "cgroup2", "no controllers")
		}
		return m.dir, controllers[0]
	}
	lacks(t, "cgroup2", "not mounted")
	return "", ""
}

// delegated makes a cgroup that has the controller, as a service manager would for a service.
func delegated(t *testing.T) (top, dir, controller string) {
	t.Helper()
	top, controller = v2Top(t)
	enabled, err := readControllers(filepath.Join(top, "cgroup.subtree_control"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(enabled, controller) {
		if err := writeControl(filepath.Join(top, "cgroup.subtree_control"), "+"+controller); err != nil {
			lacks(t, "cgroup2", err)
		}
		t.Cleanup(func() { _ = writeControl(filepath.Join(top, "cgroup.subtree_control"), "-"+controller) })
	}
	dir = filepath.Join(top, fmt.Sprintf("airlock.test.%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		lacks(t, "cgroup2", err)
	}
	t.Cleanup(func() {
		if err := removeCgroup(dir, time.Now().Add(removeTimeout)); err != nil {
			t.Error(err)
		}
	})
	return top, dir, controller
}

func startIn(t *testing.T, dir string, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if err := writeControl(filepath.Join(dir, "cgroup.procs"), itoa(cmd.Process.Pid)); err != nil {
		t.Fatal(err)
	}
}

// leafReport is what a server that was delegated a cgroup found.
type leafReport struct {
	Base, Again string
	Why         string
	Own         string // the cgroup it lives in then
	Enabled     []string
	Left        string // the cgroup it lives in after it left the leaf
	LeafGone    bool
}

// A server alone in the cgroup that was delegated to it moves to a leaf, and back at its end.
func TestServerMovesToALeaf(t *testing.T) {
	for _, tt := range []struct {
		name string
		uid  int
	}{{"root", 0}, {"ordinary user", 65534}} {
		t.Run(tt.name, func(t *testing.T) {
			top, dir, controller := delegated(t)
			cmd := child("TestChildLeaf", strings.Join([]string{top, dir, controller}, " "), 0)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(tt.uid), Gid: uint32(tt.uid)}}
			// What systemd gives to the user of a delegated unit.
			for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
				if err := os.Chown(filepath.Join(dir, name), tt.uid, tt.uid); err != nil {
					t.Fatal(err)
				}
			}
			var got leafReport
			runChildIn(t, dir, cmd, &got)
			rel := strings.TrimPrefix(dir, top)
			if got.Base != dir || got.Again != dir {
				t.Errorf("cgroups are made in %q, then in %q (%s), want %q", got.Base, got.Again, got.Why, dir)
			}
			if !strings.HasPrefix(got.Own, rel+"/"+cgroupPrefix) || !isServerLeaf(filepath.Base(got.Own)) {
				t.Errorf("the server lives in %q", got.Own)
			}
			if !slices.Contains(got.Enabled, controller) {
				t.Errorf("%s passes on %v", dir, got.Enabled)
			}
			if got.Left != rel || !got.LeafGone {
				t.Errorf("afterwards the server lives in %q (leaf gone: %v), want %q", got.Left, got.LeafGone, rel)
			}
		})
	}
}

// A process that is not the server's, in the same cgroup, is not moved: there is no cgroup then, and why.
func TestServerIsNotAlone(t *testing.T) {
	top, dir, controller := delegated(t)
	stranger := exec.Command("sleep", "60")
	startIn(t, dir, stranger)
	for _, tt := range []struct {
		name string
		uid  int
		base string // root gets the nearest cgroup above that passes the controller on
	}{{"root", 0, top}, {"ordinary user", 65534, ""}} {
		var got leafReport
		cmd := child("TestChildLeaf", strings.Join([]string{top, dir, controller}, " "), 0)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(tt.uid), Gid: uint32(tt.uid)}}
		for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
			if err := os.Chown(filepath.Join(dir, name), tt.uid, tt.uid); err != nil {
				t.Fatal(err)
			}
		}
		runChildIn(t, dir, cmd, &got)
		if got.Base != tt.base {
			t.Errorf("%s: cgroups are made in %q (%s), want %q", tt.name, got.Base, got.Why, tt.base)
		}
		if tt.base == "" && !strings.Contains(got.Why, itoa(stranger.Process.Pid)) {
			t.Errorf("%s: the reason %q does not name process %d", tt.name, got.Why, stranger.Process.Pid)
		}
	}
	pids, err := cgroupPids(dir)
	if err != nil || !slices.Contains(pids, stranger.Process.Pid) {
		t.Errorf("the stranger was moved: %v, %v", pids, err)
	}
}

func runChildIn(t *testing.T, dir string, cmd *exec.Cmd, report any) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	startIn(t, dir, cmd)
	w.Close()
	in.Close()
	decodeReport(t, r, report)
}

func TestChildLeaf(t *testing.T) {
	argument := strings.Fields(childArgument(t))
	top, dir, controller := argument[0], argument[1], argument[2]
	waitReleased()
	own := func() string {
		b, err := os.ReadFile("/proc/self/cgroup")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range parseMemberships(string(b)) {
			if m.version() == 2 {
				return m.path
			}
		}
		return ""
	}
	var got leafReport
	h, err := findV2(top, dir, []string{controller})
	if err != nil {
		got.Why = err.Error()
	}
	got.Base = h.base
	got.Own = own()
	if h.base != dir {
		reportToParent(t, got)
		return
	}
	h, err = findV2(top, filepath.Join(top, got.Own), []string{controller})
	if err != nil {
		t.Fatal(err)
	}
	got.Again = h.base
	got.Enabled, _ = readControllers(filepath.Join(dir, "cgroup.subtree_control"))

	self, err := selfStamp()
	if err != nil {
		t.Fatal(err)
	}
	group, err := makeCgroup([]hierarchy{h}, self.cgroupName("run"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := group.remove(); err != nil {
		t.Fatal(err)
	}
	if err := leaveOwnLeaf("airlock-1-2-3-"); err != nil || own() != got.Own {
		t.Fatalf("left the leaf of another server: %v", err)
	}
	leaf := filepath.Join(top, got.Own)
	if err := leaveOwnLeaf(self.prefix()); err != nil {
		t.Fatal(err)
	}
	got.Left, got.LeafGone = own(), isGone(leaf)
	reportToParent(t, got)
}

// Members are killed, also those of cgroups below, by cgroup.kill and without it.
func TestRemoveKills(t *testing.T) {
	for _, kill := range []struct {
		name string
		do   func(string)
	}{
		{"killCgroup", killCgroup},
		{"killMembers", killMembers},
	} {
		t.Run(kill.name, func(t *testing.T) {
			_, dir, _ := delegated(t)
			cmd := exec.Command("sleep", "60")
			startIn(t, dir, cmd)
			kill.do(dir)
			if err := cmd.Wait(); err == nil {
				t.Error("it was not killed")
			}
		})
	}
	t.Run("below", func(t *testing.T) {
		_, dir, _ := delegated(t)
		below := filepath.Join(dir, "a", "b")
		if err := os.MkdirAll(below, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sleep", "60")
		startIn(t, below, cmd)
		if err := removeCgroup(dir, time.Now().Add(removeTimeout)); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("it was not killed")
		}
	})
}
