package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSomeProcessors(t *testing.T) {
	var all unix.CPUSet
	for _, cpu := range []int{1, 3, 4, 70} {
		all.Set(cpu)
	}
	for _, c := range []struct {
		n, first int
		want     []int
	}{{1, 0, []int{1}}, {2, 3, []int{70, 1}}, {3, 1, []int{3, 4, 70}}, {4, 0, nil}, {9, 0, nil}} {
		got, ok := someProcessors(&all, c.n, func(int) int { return c.first })
		if ok != (c.want != nil) {
			t.Errorf("%d of 4: ok is %v", c.n, ok)
			continue
		}
		for _, cpu := range c.want {
			if !got.IsSet(cpu) || got.Count() != len(c.want) {
				t.Errorf("%d from %d: %v", c.n, c.first, got)
			}
		}
	}
}

// A run without a cgroup has as many processors as it may use, and any run is nice.
func TestProcessorsOfARun(t *testing.T) {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	own20, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	nice := strconv.Itoa(min(20-own20+payloadNice, 19))
	n := isolating(newNative(t))
	spec := testSpec(t, "sh", "-c", "nproc; nice")
	for _, c := range []struct {
		cores float64
		want  int
	}{{0, own.Count()}, {0.5, min(1, own.Count())}, {1, min(1, own.Count())}, {1.5, min(2, own.Count())}, {1000, own.Count()}} {
		spec.Limits.CPU = c.cores
		var out strings.Builder
		exit := watched(t, n, spec, Stdio{Output: &out})
		if f := strings.Fields(out.String()); exit != (Exit{}) || len(f) != 2 || f[0] != strconv.Itoa(c.want) || f[1] != nice {
			t.Errorf("%v cores: %+v, %q, want %d processors and nice %s", c.cores, exit, &out, c.want, nice)
		}
	}
}

// However many begin together, each has a session that is as nice.
func TestSessionsAreNice(t *testing.T) {
	if _, err := os.Stat("/proc/self/autogroup"); err != nil {
		t.Skipf("this kernel gives sessions no share: %v", err)
	}
	n := isolating(newNative(t))
	const script = `i=0; until grep -q 'nice %d$' /proc/self/autogroup || [ $i = 100 ]; do sleep 0.1; i=$((i+1)); done; cat /proc/self/autogroup`
	spec := testSpec(t, "sh", "-c", fmt.Sprintf(script, payloadNice))
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			var out strings.Builder
			exit := watched(t, n, spec, Stdio{Output: &out})
			if exit != (Exit{}) || !strings.HasSuffix(out.String(), fmt.Sprintf("nice %d\n", payloadNice)) {
				t.Errorf("%+v, %q", exit, &out)
			}
		})
	}
	all.Wait()
}

// A cgroup holds the time itself: what a run computes in a second of the clock is what it may.
func TestQuotaOfARun(t *testing.T) {
	n := isolating(newNative(t))
	if !strings.HasPrefix(n.Held()["cpu"], "cgroup") {
		lacks(t, "cgroup", "nothing holds the processors")
	}
	spec := testSpec(t, "/probe", "spin")
	for _, c := range []struct {
		cores float64
		most  time.Duration // in 2 s; the quota is of periods of 100 ms
	}{{0.2, 700 * time.Millisecond}} {
		spec.Limits.CPU = c.cores
		exit, out := doRun(t, n, spec, "")
		used, err := time.ParseDuration(strings.TrimSpace(out))
		if exit != (Exit{}) || err != nil || used > c.most || used == 0 {
			t.Errorf("%v cores: %+v, %q, want at most %v", c.cores, exit, out, c.most)
		}
	}
}

// spin computes for two seconds of the clock and says how long the processor was had for it.
func spin([]string) {
	for start := time.Now(); time.Since(start) < 2*time.Second; {
		sink++
	}
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	fmt.Println(time.Duration(used.Utime.Nano() + used.Stime.Nano()))
}

func init() { roles["spin"] = spin }
