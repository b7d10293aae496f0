package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	readyRounds = 20
	idleTime    = 2 * time.Second
)

// benchReady says how long a server takes until it answers, what its first call takes beside a later one, and what it
// holds in memory while it waits, with the sandbox that it has begun ahead.
func benchReady(ctx context.Context, airlock, dir string) error {
	ready := &way{name: "start to the answer to `initialize`"}
	first := &way{name: "first `run_shell` with `true`, at once"}
	later := &way{name: "a later one, after a pause"}
	for round := range few(readyRounds) {
		start := time.Now()
		s, err := startServer(ctx, airlock, filepath.Join(dir, strconv.Itoa(round)), "")
		if err != nil {
			return err
		}
		ready.times = append(ready.times, time.Since(start))
		for i, w := range []*way{first, later, later, later} {
			if i > 0 {
				time.Sleep(settleTime)
			}
			start := time.Now()
			if err := s.run(ctx, "true", "workspace: no changes"); err != nil {
				s.close()
				return err
			}
			w.times = append(w.times, time.Since(start))
		}
		if round == few(readyRounds)-1 {
			time.Sleep(idleTime)
			if err := s.printIdle(); err != nil {
				s.close()
				return err
			}
		}
		s.close()
	}
	fmt.Print(table(fmt.Sprintf("From the start of a server (%d starts)", few(readyRounds)), []*way{ready, later, first}))
	fmt.Printf("\nfirst call to a later one: %.2f\n", float64(median(first.times))/float64(median(later.times)))
	return nil
}

// printIdle says what the server and its children hold. Shared pages are shared out (Pss of smaps_rollup in proc(5)).
func (s *server) printIdle() error {
	own, err := proportionalMemory(s.pid())
	if err != nil {
		return err
	}
	below, n := 0, 0
	// Each thread has its own children; what a server starts, any thread may have started.
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.pid()))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil {
			continue // the thread is gone
		}
		for _, child := range strings.Fields(string(children)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				return err
			}
			kib, err := proportionalMemory(pid)
			if err != nil {
				return err
			}
			below, n = below+kib, n+1
		}
	}
	fmt.Printf("\nMemory of an idle server: %.1f MB, and %.1f MB of the %d processes that it keeps\n", float64(own)/1024, float64(below)/1024, n)
	return nil
}

// proportionalMemory is in KiB.
func proportionalMemory(pid int) (int, error) {
	return memoryLine(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss")
}
