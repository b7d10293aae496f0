package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// manyProcesses is a script that makes 100 processes which do nothing, each by a fork of its own, and says
// how many it could make.
const manyProcesses = `n=0; while [ $n -lt 100 ] && (exec 2>/dev/null; sleep 20 & true); do n=$((n+1)); done; echo $n processes`

func TestRunAtItsProcessLimit(t *testing.T) { onEach(t, testRunAtItsProcessLimit) }

func testRunAtItsProcessLimit(t *testing.T, n Backend) {
	// The last one takes the place of the subshell whose fork failed, so that the run is at its limit when it ends:
	// where nothing tells of a fork that failed, only that can be seen.
	spec := testSpec(t, "sh", "-c", manyProcesses+"; sleep 20 & exit 3")
	control, out := doRun(t, n, spec, "")
	if control.Code != 3 || control.Limit != "" || !strings.Contains(out, "100 processes") {
		t.Fatalf("control without a limit: %+v, %q", control, out)
	}
	const limit = 30
	spec.Limits.Processes = limit
	if n.Held()["processes"] == "" {
		lacks(t, "cgroup", "nothing holds the number of processes")
	}
	for range 2 {
		start := time.Now()
		exit, out := doRun(t, n, spec, "")
		var made int
		if _, err := fmt.Sscan(out[strings.LastIndexByte(strings.TrimSuffix(out, "\n"), '\n')+1:], &made); err != nil {
			// dash gives up at the first fork that fails; then the sleeping ones are what it had made.
			made = exit.Ended
		}
		t.Logf("%d processes, %+v, %v", made, exit, time.Since(start).Round(time.Millisecond))
		if made < limit-10 || made > limit+initHeadroom {
			t.Errorf("%d processes, want about %d; output %q", made, limit, out)
		}
		if exit.Signal != "" || exit.Killed || exit.LimitEnded {
			t.Errorf("the run was ended: %+v", exit)
		}
		if exit.Limit != "processes" {
			t.Errorf("the limit is not named: %+v", exit)
		}
	}
}

// A run that forks without end and without waiting stays within its limit, does not take init down with
// it, and is gone when its first process is.
func TestForkBomb(t *testing.T) { onEach(t, testForkBomb) }

func testForkBomb(t *testing.T, n Backend) {
	if n.Held()["processes"] == "" {
		lacks(t, "cgroup", "nothing holds the number of processes")
	}
	// Without user and PID namespaces the backend does not start it; with them and the limit it is held.
	spec := testSpec(t, "sh", "-c", "b() { b | b & }; b 2>/dev/null; sleep 0.5; exit 3")
	spec.Limits.Processes = 40
	exit, _ := doRun(t, n, spec, "")
	t.Logf("%+v", exit)
	// The shell itself may fail to fork its sleep; what counts is that it ended, and that init said so.
	if exit.Signal != "" || exit.Killed || exit.Code == 0 {
		t.Errorf("got %+v", exit)
	}
	if strings.HasPrefix(n.Held()["processes"], "cgroup") && exit.Limit != "processes" {
		t.Errorf("the limit is not named: %+v", exit)
	}
	if left := ownCgroups(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRunAtItsMemoryLimit(t *testing.T) { onEach(t, testRunAtItsMemoryLimit) }

func testRunAtItsMemoryLimit(t *testing.T, n Backend) {
	if n.Held()["memory"] == "" {
		t.Fatal("nothing is done about the memory")
	}
	// dd's buffer is memory that it really uses.
	const hog = `dd if=/dev/zero of=/dev/null bs=%dM count=1 2>/dev/null; echo went on; sleep 0.3; exit 0`
	spec := testSpec(t, "sh", "-c", fmt.Sprintf(hog, 200))
	spec.Limits.Memory = 64 << 20
	exit, out := doRun(t, n, spec, "")
	t.Logf("%+v %q", exit, out)
	if exit.Limit != "memory" || !exit.LimitEnded {
		t.Errorf("above the limit: %+v, %q", exit, out)
	}
	spec.Argv[2] = fmt.Sprintf(hog, 20)
	if exit, out := doRun(t, n, spec, ""); exit != (Exit{}) || out != "went on\n" {
		t.Errorf("control below the limit: %+v, %q", exit, out)
	}
	if left := ownCgroups(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRunsRlimits(t *testing.T) { onEach(t, testRunsRlimits) }

func testRunsRlimits(t *testing.T, n Backend) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	spec := testSpec(t, "sh", "-c", "ulimit -n; ulimit -Hn; ulimit -c; ulimit -Hc; ulimit -v")
	spec.Limits.Files = 77
	if exit, out := doRun(t, n, spec, ""); exit != (Exit{}) || out != "77\n77\n0\n0\nunlimited\n" {
		t.Errorf("got %+v, %q", exit, out)
	}
	var signals unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_SIGPENDING, &signals); err != nil {
		t.Fatal(err)
	}
	if out := shell(t, n, "grep 'pending signals' /proc/self/limits"); !strings.Contains(out, fmt.Sprintf(" %d ", signals.Max/2)) {
		t.Errorf("of the user's %d pending signals: %s", signals.Max, out)
	}
	// More than the server itself may have cannot be given.
	spec.Limits.Files = int(own.Max) + 1
	if exit, out := doRun(t, n, spec, ""); exit != (Exit{}) || !strings.HasPrefix(out, fmt.Sprintf("%d\n", own.Max)) {
		t.Errorf("above the server's own %d: %+v, %q", own.Max, exit, out)
	}
}

// Where a cgroup holds the number of processes, no rlimit may be in its way: it would be hit first, and
// nothing would be there to tell.
func TestProcessesAreTheCgroups(t *testing.T) { onEach(t, testProcessesAreTheCgroups) }

func testProcessesAreTheCgroups(t *testing.T, n Backend) {
	if !strings.HasPrefix(n.Held()["processes"], "cgroup") {
		lacks(t, "cgroup", "nothing holds the number of processes")
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &before); err != nil {
		t.Fatal(err)
	}
	spec := testSpec(t, "sh", "-c", "ulimit -u 2>/dev/null || ulimit -p")
	spec.Limits.Processes = 50
	want := fmt.Sprintf("%d\n", before.Cur)
	if before.Cur == unix.RLIM_INFINITY {
		want = "unlimited\n"
	}
	if exit, out := doRun(t, n, spec, ""); exit != (Exit{}) || out != want {
		t.Errorf("got %+v, %q, want %q", exit, out, want)
	}
}
