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

// ready says how long a server takes until it answers, with a state directory that is new and with one that a server has
// used; what its first call takes beside later ones, at once and after the pause that agents make; and what it
// holds in memory while it waits, with the sandbox that it has begun ahead.
func (b bench) ready(ctx context.Context, dir string) error {
	fresh := &way{name: "start to the answer to `initialize`, new state directory"}
	used := &way{name: "the same, used state directory"}
	first := &way{name: "first `run_shell` with `true`, at once"}
	next := &way{name: "one right after another"}
	pause := func(w *way) *way { w.before = settle; return w }
	paused := pause(&way{name: "first, after a pause"})
	later := pause(&way{name: "a later one, after a pause"})
	for round := range b.rounds(readyRounds) {
		state := filepath.Join(dir, strconv.Itoa(round))
		for _, start := range []struct {
			ready *way
			calls []*way
		}{
			{fresh, []*way{first, next, next, later, later}},
			{used, []*way{paused, later, later, later}},
			{used, []*way{first, next, next}},
		} {
			if err := b.oneStart(ctx, state, start.ready, start.calls); err != nil {
				return err
			}
		}
	}
	s, err := startServer(ctx, b.airlock, filepath.Join(dir, "idle"), "")
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.run(ctx, "true", "workspace: no changes"); err != nil {
		return err
	}
	time.Sleep(idleTime)
	if err := s.printIdle(); err != nil {
		return err
	}
	ways := []*way{later, fresh, used, first, next, paused}
	fmt.Print(table(fmt.Sprintf("From the start of a server (%d rounds of 3 starts)", b.rounds(readyRounds)), ways))
	ratio := func(a, b *way) float64 { return float64(median(a.times)) / float64(median(b.times)) }
	fmt.Printf("\nfirst call to a later one: %.2f after a pause, %.2f right after another; first at once to a later one after a pause: %.2f\n",
		ratio(paused, later), ratio(first, next), ratio(first, later))
	return nil
}

// oneStart starts a server and makes calls.
func (b bench) oneStart(ctx context.Context, dir string, ready *way, calls []*way) error {
	start := time.Now()
	s, err := startServer(ctx, b.airlock, dir, "")
	if err != nil {
		return err
	}
	defer s.close()
	ready.times = append(ready.times, time.Since(start))
	for _, w := range calls {
		if w.before != nil {
			if err := w.before(); err != nil {
				return err
			}
		}
		start := time.Now()
		if err := s.run(ctx, "true", "workspace: no changes"); err != nil {
			return err
		}
		w.times = append(w.times, time.Since(start))
	}
	return nil
}

// printIdle says what the server and the processes below it hold. Shared pages are shared out (Pss of smaps_rollup in proc(5)).
func (s *server) printIdle() error {
	own, err := proportionalMemory(s.pid())
	if err != nil {
		return err
	}
	below, n, err := memoryBelow(s.pid())
	if err != nil {
		return err
	}
	fmt.Printf("\nMemory of an idle server: %.1f MB, and %.1f MB of the %d processes that it keeps\n", float64(own)/1024, float64(below)/1024, n)
	return nil
}

// memoryBelow is what the n processes below one hold, in KiB.
func memoryBelow(pid int) (kib, n int, err error) {
	// Each thread has its own children; what a process starts, any of its threads may have started.
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, 0, err
	}
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil {
			continue // the thread is gone
		}
		for _, word := range strings.Fields(string(children)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				return 0, 0, err
			}
			own, err := proportionalMemory(child)
			if err != nil {
				return 0, 0, err
			}
			below, m, err := memoryBelow(child)
			if err != nil {
				return 0, 0, err
			}
			kib, n = kib+own+below, n+1+m
		}
	}
	return kib, n, nil
}

// proportionalMemory is in KiB.
func proportionalMemory(pid int) (int, error) {
	return memoryLine(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss")
}
