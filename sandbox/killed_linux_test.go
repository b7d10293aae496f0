package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	// A server with one run, which it never waits for.
	roles["server"] = func(args []string) {
		n, err := openBackend(args[2])
		if err != nil {
			fmt.Println("error", err)
			return
		}
		t := new(serverT)
		spec := testSpec(t, "sh", "-c", "(trap '' TERM; setsid sh -c ': $0; while :; do sleep 0.1; done' $0) & echo ready; sleep 600", args[0])
		spec.Limits = Limits{Processes: 64, Memory: 1 << 30}
		onOverlay(t, &spec, args[1])
		if _, err := n.Start(context.Background(), spec, Stdio{Output: os.Stdout}); err != nil {
			fmt.Println("error", err)
			return
		}
		select {}
	}
}

// serverT lets a process that is no test use what tests use.
type serverT struct{ testing.TB }

func (*serverT) Helper()         {}
func (*serverT) Cleanup(func())  {}
func (*serverT) Fatal(a ...any)  { fmt.Println(append([]any{"error"}, a...)...); os.Exit(1) }
func (*serverT) TempDir() string { return os.TempDir() }

// However the server dies, nothing of its runs stays.
func TestKilledServerLeavesNothing(t *testing.T) { onEach(t, testKilledServerLeavesNothing) }

func testKilledServerLeavesNothing(t *testing.T, b Backend) {
	m, ws := mark(t), t.TempDir()
	cmd := exec.Command("/proc/self/exe", "server", m, ws, b.Name())
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	t.Cleanup(func() {
		layers, _ := filepath.Glob(strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "TMPDIR=") + "/*")
		for _, l := range layers {
			removeLayer(l)
		}
	})
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		lacks(t, "userns", fmt.Sprint(line, err))
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	eventually(t, "control: the server, the shell and what it started can be seen", func() bool { return processesWith(t, m) >= 3 })
	prefix := fmt.Sprintf("airlock-%d-", cmd.Process.Pid)
	if os.Geteuid() == 0 && len(cgroupsWith(prefix)) == 0 {
		lacks(t, "cgroup", "the run has no cgroup")
	}

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "no process of it is left", func() bool { return processesWith(t, m) == 0 })
	eventually(t, "no cgroup of it is left", func() bool { return len(cgroupsWith(prefix)) == 0 })
	if after, _ := os.ReadFile("/proc/self/mounts"); !bytes.Equal(mounts, after) {
		t.Errorf("mounts changed from\n%s\nto\n%s", mounts, after)
	}
	if entries, err := os.ReadDir(ws); len(entries) > 0 {
		t.Errorf("the workspace holds %v (%v)", entries, err)
	}
}

// cgroupsWith finds the cgroups whose names begin with prefix.
func cgroupsWith(prefix string) []string {
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(p string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), prefix) {
			found = append(found, p)
		}
		return nil
	})
	return found
}

// What a server that ends itself with SIGKILL has done by then: its run has just begun, and init is about to look after it;
// or it has ended, and init waits for the server to take its sandbox down.
var killedWhen = []string{"started", "ended"}

func init() {
	roles["server that is killed"] = func(args []string) {
		t := new(serverT)
		n, err := openBackend(args[0])
		if err != nil {
			t.Fatal(err)
		}
		command := map[string]string{"started": "sleep 600", "ended": "true"}[args[1]]
		p, err := n.Start(context.Background(), testSpec(t, "sh", "-c", command), Stdio{})
		if err == nil && args[1] == "ended" {
			_, err = p.Ended()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range descendants(os.Getpid()) {
			comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			fmt.Println(pid, strings.TrimSpace(string(comm)))
		}
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	}
}

// descendants are the processes below another.
func descendants(of int) (found []int) {
	below := map[int]bool{of: true}
	for grown := true; grown; {
		grown = false
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || below[pid] {
				continue
			}
			if st, err := readStat(pid); err == nil && below[st.parent] {
				below[pid], grown = true, true
				found = append(found, pid)
			}
		}
	}
	return found
}

// Nor does anything stay where the server dies at once, or between a run's end and its being waited for.
func TestServerKilledAtOnce(t *testing.T) { onEach(t, testServerKilledAtOnce) }

func testServerKilledAtOnce(t *testing.T, b Backend) {
	for _, when := range killedWhen {
		cmd := exec.Command("/proc/self/exe", "server that is killed", b.Name(), when)
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
		out, err := cmd.Output()
		if exit := cmd.ProcessState; !exit.Sys().(syscall.WaitStatus).Signaled() {
			t.Fatalf("%s: %v: %s", when, err, out)
		}
		died := time.Now()
		if !strings.Contains(string(out), initName) {
			t.Fatalf("%s: control: no init was seen: %s", when, out)
		}
		eventually(t, when+": no process of it is left", func() bool {
			return !slices.ContainsFunc(strings.Split(strings.TrimSpace(string(out)), "\n"), func(line string) bool {
				number, _, _ := strings.Cut(line, " ")
				pid, err := strconv.Atoi(number)
				if err != nil {
					t.Fatalf("%s: %q", when, line)
				}
				st, err := readStat(pid)
				return err == nil && st.state != 'Z'
			})
		})
		t.Logf("%s: gone after %v", when, time.Since(died))
	}
}
