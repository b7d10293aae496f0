package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A payload, however it comes to be started, has the slack of any other process, whatever its init has.
func TestTimerSlackOfAPayload(t *testing.T) {
	onEach(t, func(t *testing.T, b Backend) {
		n := isolating(b)
		want := fmt.Sprintln(usualSlack.Nanoseconds())
		spec := bashSpec(t, "cat /proc/self/timerslack_ns")
		n.reserve.drop()
		if exit, out := doRun(t, n, spec, ""); exit != (Exit{}) || out != want {
			t.Errorf("%+v, %q", exit, out)
		}
		if exit, out := doAhead(t, n, spec, spec); exit != (Exit{}) || out != want {
			t.Errorf("ahead: %+v, %q", exit, out)
		}
	})
}

// The monitor of an init is woken rarely; the threads that measure time or start something are not.
func TestTimerSlackOfAnInit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("who may not trace init can't read it")
	}
	onEach(t, func(t *testing.T, b Backend) {
		undisturbed(t, func() {
			s := waitingSpare(t, isolating(b), bashSpec(t, "true"))
			found := map[string]int{}
			for _, id := range tasksOf(t, pidOf(t, s.init)) {
				slack, err := os.ReadFile(filepath.Join("/proc", id, "timerslack_ns"))
				if err != nil {
					t.Error(err)
				}
				found[strings.TrimSpace(string(slack))]++
			}
			usual, late := found[strconv.FormatInt(usualSlack.Nanoseconds(), 10)], found[strconv.FormatInt(monitorSlack.Nanoseconds(), 10)]
			if late == 0 || usual < 3 {
				t.Errorf("threads by their slack: %v; want the monitor's, and those of main, the launcher and the watch", found)
			}
		})
	})
}

// A thread that has started an init is woken as it was before.
func TestMonitorSlackIsGivenBack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slack := func() time.Duration {
		ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(ns)
	}
	before, during := slack(), time.Duration(0)
	withMonitorSlack(func() { during = slack() })
	if after := slack(); during != monitorSlack || after != before {
		t.Errorf("%v before, %v during, %v after", before, during, after)
	}
}

// pidOf is the process id of an init, which must not have ended.
func pidOf(t *testing.T, init initProcess) int {
	t.Helper()
	w, ok := init.(*wrappedInit)
	if !ok {
		return init.(*clonedInit).pid
	}
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", w.pidfd.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(info), "\nPid:\t")
	text, _, _ = strings.Cut(text, "\n")
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func tasksOf(t *testing.T, pid int) (ids []string) {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids
}
