package sandbox

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// payloadNice is by how much a run is nicer than its server: where both want to compute, one of its processes gets
// a third of what one of the host's own gets; where nobody else does it changes nothing. (On a desktop the scheduler
// gives each session a share of its own, by which then the number counts that [niceSession] writes. A cgroup that
// holds processors has a share too: cgroupWeight.)
const payloadNice = 5

// cgroupWeight is the share that payloadNice stands for, in thousandths of what a cgroup has by default.
const cgroupWeight = 327

// shareProcessors makes a process of one thread, the calling one if pid is 0, and what it will fork, nice; and, if cores is
// not 0 since no cgroup holds it, gives it as many processors as it may use. That a run is not as fair as it should be is no
// reason not to run.
func shareProcessors(pid int, cores float64) {
	if own, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil { // the system call gives 20 - nice
		_ = unix.Setpriority(unix.PRIO_PROCESS, pid, min(20-own+payloadNice, 19))
	}
	if cores <= 0 {
		return
	}
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &all); err != nil {
		return
	}
	if few, ok := someProcessors(&all, int(math.Ceil(min(cores, 1<<20))), rand.IntN); ok {
		_ = unix.SchedSetaffinity(pid, few)
	}
}

// niceSession makes the session that the payload has begun as nice as the payload is. The kernel takes ten such numbers
// a second from all who are not root of the host, and refuses the rest with EAGAIN; among runs that begin
// together most are refused at first. It returns when the number was taken, or never will be.
func niceSession(pid int) {
	file := fmt.Sprintf("/proc/%d/autogroup", pid)
	for range 100 {
		err := os.WriteFile(file, []byte(strconv.Itoa(payloadNice)), 0)
		if !errors.Is(err, unix.EAGAIN) {
			return // not every kernel has it, and the payload may have ended
		}
		time.Sleep(100*time.Millisecond + rand.N(50*time.Millisecond))
	}
}

// someProcessors gives n of the processors in all, from a random one on, so that several runs don't share
// what others leave idle; not ok if there are no more than n.
func someProcessors(all *unix.CPUSet, n int, random func(n int) int) (_ *unix.CPUSet, ok bool) {
	var list []int
	for cpu := range len(all) * 64 {
		if all.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	if n >= len(list) {
		return nil, false
	}
	few := new(unix.CPUSet)
	first := random(len(list))
	for i := range n {
		few.Set(list[(first+i)%len(list)])
	}
	return few, true
}
