package lull

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
)

// processorsBusy compares the threads that run, or could, with the processors that this process may have. They are those
// of the whole host. Where this process may have but some of the processors (a cpuset) the rest may be idle all the same; waiting
// for them does no harm, and is bounded by patience.
func processorsBusy() bool {
	text, err := os.ReadFile("/proc/loadavg")
	return err == nil && runnable(text) > runtime.NumCPU()
}

// runnable reads the number of such threads, the reader's own among them, from what /proc/loadavg has: see proc_loadavg(5). It is
// 0 where there is none.
func runnable(loadavg []byte) int {
	fields := bytes.Fields(loadavg)
	if len(fields) < 4 {
		return 0
	}
	n, _, _ := bytes.Cut(fields[3], []byte("/"))
	count, _ := strconv.Atoi(string(n))
	return count
}
