package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A payload, however it comes to be started, is woken as late as any other process, whatever its init is.
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
	n := isolating(newNative(t))
	undisturbed(t, func() {
		s := waitingSpare(t, n, bashSpec(t, "true"))
		pid := s.init.(*clonedInit).pid
		found := map[string]int{}
		for _, id := range tasksOf(t, pid) {
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
