package sandbox

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// starterOf is the process that starts the inits of a backend; 0 if there is none.
func starterOf(n *Native) int {
	s := n.maker.(*starter)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// A clone that shared nothing with its child would make each page of the server's a fault at the next write.
func TestStartsCostTheServerNoFaults(t *testing.T) {
	n := isolating(newNative(t))
	shell(t, n, "true") // what is set up once
	const pages = 16 << 10
	memory, err := unix.Mmap(-1, 0, pages*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	if err := unix.Madvise(memory, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		t.Fatal(err)
	}
	runtime.LockOSThread() // whose faults are counted
	defer runtime.UnlockOSThread()
	faults := func() int64 {
		var before, after unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_THREAD, &before)
		for i := range pages {
			memory[i*os.Getpagesize()]++
		}
		_ = unix.Getrusage(unix.RUSAGE_THREAD, &after)
		return after.Minflt - before.Minflt
	}
	if first := faults(); first < pages/20 {
		t.Fatalf("memory that was not written to yet: %d faults", first)
	}
	p := startRun(t, n, testSpec(t, "sleep", "0.2"), Stdio{})
	if got := faults(); got > pages/100 {
		t.Errorf("after a start: %d faults in %d pages", got, pages)
	}
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// A run outlives the process that has started it, and the next start has another one.
func TestStarterThatWasKilled(t *testing.T) {
	n := isolating(newNative(t))
	var out bytes.Buffer
	p := startRun(t, n, testSpec(t, "sh", "-c", "echo begun; read x; echo $x"), Stdio{Output: &out, Stdin: &waitingReader{t: t, before: func() {
		pid := starterOf(n)
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
		waitUntil(t, "the starter is gone", func() bool { return isZombie(pid) })
	}, text: "still there\n"}})
	if exit, err := p.Wait(); err != nil || exit != (Exit{}) || out.String() != "begun\nstill there\n" {
		t.Errorf("%+v, %v, output %q", exit, err, &out)
	}
	shell(t, n, "true")
	_ = unix.Kill(starterOf(n), unix.SIGKILL) // and once more, while nothing goes on
	if got := shell(t, n, "echo again"); got != "again\n" {
		t.Errorf("got %q", got)
	}
}

// waitingReader calls before, and then gives text.
type waitingReader struct {
	t      *testing.T
	before func()
	text   string
}

func (r *waitingReader) Read(p []byte) (int, error) {
	if r.before != nil {
		r.before()
		r.before = nil
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	if n == 0 {
		return 0, os.ErrClosed
	}
	return n, nil
}

func TestStarterHoldsNothing(t *testing.T) {
	t.Setenv("TEST_SECRET", "x")
	leaked, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaked)
	b, err := NewNative()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	p := startRun(t, b, testSpec(t, "sleep", "0.2"), Stdio{})
	pid := starterOf(b)
	holdsNothing(t, pid)
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := readStat(pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the starter is there after the end of its backend: %v", err)
	}
}
