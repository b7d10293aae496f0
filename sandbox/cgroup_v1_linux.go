package sandbox

import (
	"strconv"
	"sync"
	"time"
)

// settingsV1 are the values of version 1's control files that hold the limits of one controller.
func settingsV1(controller string, l Limits) []setting {
	switch {
	case controller == controllerPids && l.Processes > 0:
		return []setting{{"pids.max", strconv.Itoa(l.Processes + initHeadroom), false}}
	case controller == controllerMemory && l.Memory > 0:
		bytes := strconv.FormatInt(l.Memory, 10)
		return []setting{
			{"memory.limit_in_bytes", bytes, false},
			// Memory and swap together; it may not be below the limit of memory, so it comes second.
			// It is missing where swap is not accounted for.
			{"memory.memsw.limit_in_bytes", bytes, true},
		}
	case controller == controllerCPU && l.CPU > 0:
		return []setting{
			{"cpu.cfs_period_us", strconv.Itoa(cpuPeriod), false},
			{"cpu.cfs_quota_us", strconv.Itoa(cpuQuota(l.CPU)), false},
			{"cpu.shares", strconv.Itoa(1024 * cgroupWeight / 1000), true},
		}
	}
	return nil
}

// oomInterval is how often version 1 is asked whether the kernel has killed a process.
const oomInterval = 50 * time.Millisecond

// oomWatch ends a run whose memory limit was reached. Version 2 does that itself (memory.oom.group);
// version 1 kills one process and lets the others go on, which would make a landing of half the work
// possible. The kernel's own notification (cgroup.event_control) is deprecated, so the count is read.
type oomWatch struct {
	quit chan struct{}
	done sync.WaitGroup
}

func watchOOM(d cgroupDir) *oomWatch {
	w := &oomWatch{quit: make(chan struct{})}
	w.done.Go(func() {
		tick := time.NewTicker(oomInterval)
		defer tick.Stop()
		for {
			select {
			case <-w.quit:
				return
			case <-tick.C:
			}
			if d.oomKills() > 0 {
				killCgroup(d.path)
			}
		}
	})
	return w
}

// stop ends the watch and waits for it; a nil watch is none.
func (w *oomWatch) stop() {
	if w != nil {
		close(w.quit)
		w.done.Wait()
	}
}
