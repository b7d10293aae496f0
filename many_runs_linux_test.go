package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"airlock/tools"
)

var manyRuns = flag.Int("many-runs", 12, "how many runs the search for leaks does; 10000 takes half an hour or more")

// belongings is what a server has that could become more with each run.
type belongings struct {
	descriptors, goroutines, threads, children, mounts, cgroups, files int
	heap, resident                                                     int64 // bytes
}

func (b belongings) String() string {
	return fmt.Sprintf("%d descriptors, %d goroutines, %d threads, %d child processes, %d mounts, %d cgroups, %d files of state beside the history, %.1f MiB heap, %.1f MiB resident",
		b.descriptors, b.goroutines, b.threads, b.children, b.mounts, b.cgroups, b.files, float64(b.heap)/(1<<20), float64(b.resident)/(1<<20))
}

func look(t *testing.T, state string) belongings {
	t.Helper()
	entries := func(dir string) int {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	text := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var b belongings
	for range 2 { // finalizers
		runtime.GC()
		time.Sleep(100 * time.Millisecond)
	}
	b.descriptors = entries("/proc/self/fd")
	b.goroutines = runtime.NumGoroutine()
	b.threads = entries("/proc/self/task")
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		b.children += len(strings.Fields(string(children)))
	}
	b.mounts = strings.Count(text("/proc/self/mountinfo"), "\n")
	own := fmt.Sprintf("airlock-%d-", os.Getpid())
	_ = filepath.WalkDir("/sys/fs/cgroup", func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), own) {
			b.cgroups++
		}
		return nil // others come and go
	})
	err = filepath.WalkDir(state, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "history" {
			return fs.SkipDir // bounded by itself
		}
		b.files++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.heap = int64(m.HeapInuse)
	var pages int64
	if _, err := fmt.Sscan(strings.Fields(text("/proc/self/statm"))[1], &pages); err != nil {
		t.Fatal(err)
	}
	b.resident = pages * int64(os.Getpagesize())
	return b
}

// realRunner opens a runner as a server does, for a new workspace of a new person.
func realRunner(t *testing.T, edit func(*settings)) (runner tools.Runner, state, workspace string) {
	t.Helper()
	return configuredRunner(t, "", edit)
}

// configuredRunner is realRunner for a person whose file has the given text.
func configuredRunner(t *testing.T, config string, edit func(*settings)) (runner tools.Runner, state, workspace string) {
	t.Helper()
	workspace = t.TempDir()
	runner, state = runnerIn(t, t.TempDir(), workspace, config, edit)
	return runner, state, workspace
}

// runnerIn is configuredRunner for a home directory and a workspace that are there.
func runnerIn(t *testing.T, home, workspace, config string, edit func(*settings)) (runner tools.Runner, state string) {
	t.Helper()
	if err := sandboxHere(); err != nil {
		if slices.Contains(strings.Split(*require, ","), "userns") {
			t.Fatal("-require=userns: ", err)
		}
		t.Skip("no sandbox can be built here: ", err)
	}
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	s, err := commonFlags{config: file}.setUp(environ)
	if err != nil {
		t.Fatal(err)
	}
	edit(&s.user)
	o, err := s.open(workspace)
	if err != nil {
		t.Fatal(err)
	}
	if runner, err = openRunner(t.Context(), s.places, o, environ); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runner.Close(); err != nil {
			t.Error(err)
		}
		// Go's module cache has directories that nobody may write to.
		_ = filepath.WalkDir(s.places.state, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				return os.Chmod(name, 0o700)
			}
			return nil
		})
	})
	return runner, s.places.state
}

// A server has after many runs, of every kind of end, what it had before.
func TestManyRunsLeaveNothing(t *testing.T) {
	runner, state, _ := realRunner(t, func(s *settings) { s.Limits.Disk = 8 << 20 })
	kinds := []struct {
		command string
		cancel  bool
		want    string
	}{
		{"echo $RANDOM > f; mkdir -p d; date > d/g", false, "exited"},
		{"echo x > f; exit 3", false, "exited"},
		{"(setsid sleep 60 &); (trap '' TERM; sleep 60) & echo x > f; true", false, "exited"},
		{"echo x > /tmp/f; echo y >> ~/.cache/f; echo z > f; sleep 60", true, "cancelled"},
		{"head -c 20M /dev/zero > big; sleep 60", false, "limit"},
		{"kill -SEGV $$", false, "signaled"},
	}
	one := func(i int) {
		kind := kinds[i%len(kinds)]
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if kind.cancel {
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		result, err := runner.Run(ctx, tools.Request{Tool: "run_shell", Command: kind.command}, nil)
		if err != nil || result.Status != kind.want {
			t.Fatalf("run %d, %q: %s, want %s (%v)\n%s", i, kind.command, result.Status, kind.want, err, result.Text())
		}
	}
	for i := range 2 * len(kinds) {
		one(i)
	}
	before := look(t, state)
	start := time.Now()
	for i := range *manyRuns {
		one(i)
		if done := i + 1; done%1000 == 0 && done < *manyRuns {
			t.Logf("after %d runs: %v", done, look(t, state))
		}
	}
	took := time.Since(start)
	after := look(t, state)
	t.Logf("before: %v", before)
	t.Logf("after %d runs, %v each: %v", *manyRuns, (took / time.Duration(*manyRuns)).Round(10*time.Microsecond), after)

	grown := after
	grown.heap, grown.resident, grown.threads = before.heap, before.resident, before.threads
	if grown != before {
		t.Errorf("something is left")
	}
	if after.heap > before.heap+8<<20 || after.resident > before.resident+48<<20 || after.threads > before.threads+16 {
		t.Errorf("memory or threads are left")
	}
}
