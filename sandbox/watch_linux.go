package sandbox

import (
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watch is how init looks after the limits of its run that no kernel mechanism holds or reports:
//
//   - memory, where no cgroup holds it. Beyond the limit, or when the host itself has little left, every
//     process of the run is killed;
//   - processes, where an rlimit holds them, which has no event to tell of: that a run was seen with all the
//     processes that it may have is said;
//   - what the private tmpfs holds, which is told to the server: together with the layers it counts for
//     limits.disk.
//
// At the end it says beside them whether the run wanted to go where its network does not lead.
//
// What it doesn't see: memory that comes and goes between two looks, shared memory that is mapped by nobody
// at the time and has no descriptor in a process's table, and buffers of the kernel, as those of sockets.
// That is what the floor of the host's memory is for.
type watch struct {
	limits  Limits // those of config: Memory and Processes are 0 where a cgroup holds them
	nproc   int    // what RLIMIT_NPROC is set to for the run; 0: nothing to see
	floor   int64  // of the host's available memory
	meter   *memoryMeter
	routes  routes
	control *os.File
	begun   chan struct{}

	mu sync.Mutex // held while it looks, and from finish on

	told       int64 // what the server knows of the tmpfs
	exact      int64 // the last exact measure, and what the cheap one was then
	exactAt    int64
	exactUntil time.Time

	found findings
}

const (
	// watchInterval is the time between two looks. What a run can take in it is what goes beyond its limit: a
	// core fills 100 to 250 MB, by an estimate.
	watchInterval = 50 * time.Millisecond
	// closeInterval is the time where a run holds more than half of its limit.
	closeInterval = 20 * time.Millisecond
	// memoryFloor is how much of the host's memory a run leaves to everyone else, in bytes. Where little more
	// was available when the watch began, it leaves half of that.
	memoryFloor = 512 << 20
)

// newWatch prepares the watch of a run, in a root whose base is built: /proc and /dev/shm are the run's. Its thread is
// there when it returns, since later the run's limits could forbid to make it; it looks from begin on, which limit comes before.
func newWatch(control *os.File) (*watch, error) {
	scratch, err := openPath("/dev/shm")
	if err != nil {
		return nil, err
	}
	w := &watch{control: control, routes: noRoutes, begun: make(chan struct{})}
	if w.meter, err = newMemoryMeter(scratch.file()); err != nil {
		return nil, setupError("open", "/proc", err)
	}
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		setSlack(usualSlack)
		close(ready)
		<-w.begun
		w.loop()
	}()
	<-ready
	return w, nil
}

// limit says what to look for. initTasks is how many threads are granted to init beside the run's processes.
func (w *watch) limit(l Limits, initTasks int) {
	w.limits, w.meter.memory = l, l.Memory > 0
	if l.Processes > 0 {
		w.nproc = l.Processes + initTasks
	}
}

// begin starts looking, settleTime after the run has begun.
func (w *watch) begin() { close(w.begun) }

func (w *watch) loop() {
	w.setFloor() // not in limit: a run that is over within settleTime need not ask the host
	for pause := watchInterval - settleTime; ; {
		nap(pause)
		w.mu.Lock()
		pause = w.look(0)
		if w.found.Memory || w.found.Floor {
			// The kernel leaves out init. A fork that is going on fails for the signal, so that once is enough.
			_ = unix.Kill(-1, unix.SIGKILL)
		}
		if used := w.found.Scratch; used != w.told {
			w.told = used
			_ = send(w.control, message{Scratch: &scratchUse{Bytes: used}}) // if nobody listens, init ends anyway
		}
		w.mu.Unlock()
	}
}

// setFloor finds out how much of its memory the host is to keep.
func (w *watch) setFloor() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limits.Memory > 0 {
		w.floor = min(memoryFloor, w.meter.available()/2)
	}
}

// finish ends the watch, after one more look at what the main process, which was reaped, has left, and returns what was found. Where
// there are no others, the processes need not be looked at. The thread that looks is not waited for: init's answer is, and init
// ends with it.
func (w *watch) finish(others bool) findings {
	w.mu.Lock() // and never unlocked
	if others {
		w.look(1)
	} else {
		w.noteObjects()
	}
	w.found.Unrouted = w.routes.missed()
	return w.found
}

// look notes what there is to see, and says when to look again. reaped is how many tasks were the run's until just now, and count
// as if they were there.
func (w *watch) look(reaped int) (next time.Duration) {
	if w.limits.Memory <= 0 && w.nproc <= 0 {
		w.noteObjects()
		return watchInterval
	}
	f, err := w.meter.look()
	w.found.Scratch = f.scratch
	if err != nil {
		return watchInterval
	}
	if w.nproc > 0 && f.tasks+reaped >= w.nproc {
		w.found.Processes = true
	}
	if w.limits.Memory <= 0 {
		return watchInterval
	}
	if w.meter.available() < w.floor {
		w.found.Floor = true
	}
	held := f.atMost()
	if held > w.limits.Memory {
		held = w.measure(f)
	}
	if held > w.limits.Memory {
		w.found.Memory = true
	}
	if held > w.limits.Memory/2 {
		return closeInterval
	}
	return watchInterval
}

// noteObjects is look where no process has to be looked at: none is left, or nothing is watched of them. An error leaves what was
// found before.
func (w *watch) noteObjects() {
	f, err := w.meter.lookAtObjects()
	if err != nil {
		return
	}
	w.found.Scratch = f.scratch
	if w.limits.Memory > 0 && f.atMost() > w.limits.Memory {
		w.found.Memory = true
	}
}

// measure is exactly, but not each time: it takes at most a fifth of a core, unless the run has grown since
// by so much that it could be beyond its limit now. (It could be so without having grown, by writing to
// pages that it shared with its own forks; that is seen a little later.)
func (w *watch) measure(f footprint) int64 {
	grown := f.atMost() - w.exactAt
	start := time.Now()
	if w.exact > 0 && start.Before(w.exactUntil) && w.exact+grown <= w.limits.Memory {
		return w.exact
	}
	w.exact, w.exactAt = w.meter.exactly(f), f.atMost()
	w.exactUntil = time.Now().Add(4 * time.Since(start))
	return w.exact
}
