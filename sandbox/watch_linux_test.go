package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watched starts no cgroup for a run, so that init alone looks after its limits, whoever plays the test.
func watched(t *testing.T, n *Native, spec Spec, stdio Stdio) Exit {
	t.Helper()
	alone := &Native{exe: n.exe, maker: n.maker, held: n.held}
	alone.newGroup = func(string, Limits) (*cgroup, error) { return nil, nil }
	p, err := alone.launch(t.Context(), spec, stdio)
	if err != nil {
		startRun(t, n, spec, stdio) // tells a host that can't from a fault
		t.Fatal(err)
	}
	exit, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

func init() {
	roles["hold"] = hold
	roles["threads"] = threads
}

// sink keeps reads from being optimized away.
var sink byte

// hold takes memory in one of the ways there are, says so, and keeps it for a second.
func hold(args []string) {
	var kind string
	var mb int
	if _, err := fmt.Sscan(strings.Join(args, " "), &kind, &mb); err != nil {
		panic(err)
	}
	size := mb << 20
	fill := func(b []byte) {
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	mapped := func(fd, flags int) []byte {
		b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
		if err != nil {
			panic(err)
		}
		return b
	}
	write := func(f *os.File) {
		chunk := make([]byte, 1<<20)
		for range mb {
			if _, err := f.Write(chunk); err != nil {
				panic(err)
			}
		}
	}
	switch kind {
	case "heap":
		fill(mapped(-1, unix.MAP_PRIVATE|unix.MAP_ANON))
	case "shared":
		fill(mapped(-1, unix.MAP_SHARED|unix.MAP_ANON))
	case "memfd":
		fd, err := unix.MemfdCreate("x", 0)
		if err != nil {
			panic(err)
		}
		write(os.NewFile(uintptr(fd), "memfd"))
	case "tmp":
		f, err := os.Create("/tmp/f")
		if err != nil {
			panic(err)
		}
		write(f)
	case "segment":
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, size, unix.IPC_CREAT|0o600)
		if err != nil {
			panic(err)
		}
		b, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			panic(err)
		}
		fill(b)
		if err := unix.SysvShmDetach(b); err != nil {
			panic(err)
		}
	case "tables": // each page of a mapping that is only read is the same one, but has its entry
		b, err := unix.Mmap(-1, 0, size<<9, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			panic(err)
		}
		if err := unix.Madvise(b, unix.MADV_NOHUGEPAGE); err != nil {
			panic(err)
		}

		for i := 0; i < len(b); i += 2 << 20 {
			sink += b[i]
		}

	case "forks": // eight processes that share what one has written
		fill(mapped(-1, unix.MAP_PRIVATE|unix.MAP_ANON))
		for range 7 {
			pid, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
			if errno != 0 {
				panic(errno)
			}
			if pid == 0 {
				for {
					_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0) // for ever
				}
			}
		}
	case "thread": // after the first thread has ended, which the process is named by
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			go hold(args) // some thread that has nothing to do is the first one
			time.Sleep(time.Hour)
		}
		go func() {
			time.Sleep(100 * time.Millisecond)
			fill(mapped(-1, unix.MAP_PRIVATE|unix.MAP_ANON))
			heldIt()
			os.Exit(0)
		}()
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	case "apart": // in a table of descriptors that is one thread's
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // whose table the process's is
			go hold(args)
			for {
				_ = unix.Pause()
			}
		}
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			panic(err)
		}
		fd, err := unix.MemfdCreate("x", 0)
		if err != nil {
			panic(err)
		}
		chunk := make([]byte, 1<<20)
		for range mb {
			if _, err := unix.Write(fd, chunk); err != nil {
				panic(err)
			}
		}
		// Go's scheduler is not made for a thread with a table of its own: from here on it is not asked.
		_, _ = unix.Write(1, []byte("has it\n"))
		_ = unix.Nanosleep(&unix.Timespec{Sec: 1}, nil)
		_, _ = unix.Write(1, []byte("went on\n"))
		unix.Exit(0)
	case "semaphores":
		const each = 32000
		for n := 0; n*64 < size; n += each {
			if _, _, errno := unix.Syscall(unix.SYS_SEMGET, unix.IPC_PRIVATE, each, 0o600); errno != 0 {
				panic(errno)
			}
		}
	case "messages":
		message := make([]byte, 8+8192) // its type, and what is in it
		message[0] = 1
		for n := 0; n < size; n += 8192 {
			queue, _, errno := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, 0o600, 0)
			if errno == 0 {
				_, _, errno = unix.Syscall6(unix.SYS_MSGSND, queue, uintptr(unsafe.Pointer(&message[0])), 8192, 0, 0, 0)
			}
			if errno != 0 {
				panic(errno)
			}
		}
	case "files":
		for n := range size / 1024 {
			f, err := os.Create(fmt.Sprint("/tmp/", n))
			if err != nil {
				panic(err)
			}
			f.Close()
		}
	}
	heldIt()
}

func heldIt() {
	fmt.Println("has it")
	time.Sleep(time.Second)
	fmt.Println("went on")
}

func TestWatchedMemory(t *testing.T) {
	n := isolating(newNative(t))
	for _, kind := range []string{"heap", "shared", "memfd", "tmp", "segment", "tables", "thread", "apart", "semaphores", "messages", "files"} {
		for _, c := range []struct {
			mb    int
			ended bool
		}{{160, true}, {20, false}} {
			t.Run(fmt.Sprintf("%s %d", kind, c.mb), func(t *testing.T) {
				spec := testSpec(t, "/probe", "hold", kind, fmt.Sprint(c.mb))
				spec.Limits.Memory = 96 << 20
				var out strings.Builder
				start := time.Now()
				exit := watched(t, n, spec, Stdio{Output: &out})
				t.Logf("%v: %+v, %q", time.Since(start).Round(time.Millisecond), exit, out.String())
				if c.ended && (exit.Limit != "memory" || !exit.LimitEnded || exit.HostShort || strings.Contains(out.String(), "went on")) {
					t.Errorf("beyond the limit: %+v, %q", exit, &out)
				}
				if !c.ended && (exit != Exit{} || !strings.Contains(out.String(), "went on")) {
					t.Errorf("below the limit: %+v, %q", exit, &out)
				}
			})
		}
	}
}

// What a run has left counts, also one that was over before the first look, and of which no process is left.
func TestMemoryThatAShortRunLeft(t *testing.T) {
	n := isolating(newNative(t))
	for _, c := range []struct {
		mb   string
		want string
	}{{"12M", "memory"}, {"2M", ""}} {
		spec := testSpec(t, "sh", "-c", "head -c "+c.mb+" /dev/zero > /tmp/left")
		spec.Limits.Memory = 8 << 20
		if exit := watched(t, n, spec, Stdio{}); exit.Limit != c.want {
			t.Errorf("%s: %+v", c.mb, exit)
		}
	}
}

// What processes share counts once: eight that have 40 MiB in common hold 40.
func TestWatchedMemoryIsShared(t *testing.T) {
	n := isolating(newNative(t))
	spec := testSpec(t, "/probe", "hold", "forks", "40")
	spec.Limits.Memory = 128 << 20
	var out strings.Builder
	exit := watched(t, n, spec, Stdio{Output: &out})
	if exit.Limit != "" || exit.Code != 0 || exit.Signal != "" || !strings.Contains(out.String(), "went on") {
		t.Errorf("%+v, %q", exit, &out)
	}
}

// A run that is at the number of processes that it may have is said to be, also where no cgroup counts.
func TestWatchedProcesses(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("an rlimit doesn't bind a uid 0; the ordinary user's half of the tests plays this")
	}
	n := isolating(newNative(t))
	for _, c := range []struct {
		limit int
		want  string
	}{{20, "processes"}, {60, ""}} {
		spec := testSpec(t, "sh", "-c", "(for i in $(seq 30); do sleep 1 & done; wait) 2>/dev/null; sleep 1; exit 3")
		spec.Limits.Processes = c.limit
		exit := watched(t, n, spec, Stdio{})
		if exit.Limit != c.want || exit.LimitEnded {
			t.Errorf("limit %d: %+v", c.limit, exit)
		}
	}
}

// At the end the processes count if others than the main one are left, and the main one with them.
func TestFinishCountsProcesses(t *testing.T) {
	for _, others := range []bool{true, false} {
		scratch, err := openPath("/dev/shm")
		if err != nil {
			t.Fatal(err)
		}
		w := &watch{limits: Limits{Processes: 1}, routes: noRoutes}
		if w.meter, err = newMemoryMeter(scratch.file()); err != nil {
			t.Fatal(err)
		}
		f, err := w.meter.look()
		if err != nil || f.tasks == 0 {
			t.Fatal(f, err)
		}
		w.nproc = f.tasks / 2 // the host's come and go
		if found := w.finish(others); found.Processes != others {
			t.Errorf("others %v: %+v", others, found)
		}
	}
}

func TestScratchIsTold(t *testing.T) {
	for _, memory := range []int64{0, 1 << 30} {
		t.Run(fmt.Sprint(memory), func(t *testing.T) { testScratchIsTold(t, memory) })
	}
}

func testScratchIsTold(t *testing.T, memory int64) {
	n := isolating(newNative(t))
	spec := testSpec(t, "sh", "-c", "head -c 3M /dev/zero > /tmp/a; sleep 0.2; head -c 2M /dev/zero > /dev/shm/b; rm /tmp/a; head -c 6M /dev/zero > $HOME/c")
	spec.Limits.Memory = memory
	var last, most, calls atomic.Int64
	exit := watched(t, n, spec, Stdio{Scratch: func(bytes int64) {
		last.Store(bytes)
		most.Store(max(most.Load(), bytes))
		calls.Add(1)
	}})
	t.Logf("told %d times, at last %d", calls.Load(), last.Load())
	if got := last.Load() >> 20; exit != (Exit{}) || got != 8 || calls.Load() < 2 {
		t.Errorf("%+v, at last %d MiB, told %d times", exit, got, calls.Load())
	}
}

// The kernel's own choice, when the host has no memory left, is a run that nothing holds.
func TestWatchedRunGoesFirst(t *testing.T) {
	n := isolating(newNative(t))
	spec := testSpec(t, "cat", "/proc/self/oom_score_adj")
	for _, c := range []struct {
		memory int64
		want   string
	}{{0, payloadOOMScore}, {1 << 30, unheldOOMScore}} {
		spec.Limits.Memory = c.memory
		var out strings.Builder
		if exit := watched(t, n, spec, Stdio{Output: &out}); exit != (Exit{}) || strings.TrimSpace(out.String()) != c.want {
			t.Errorf("limit %d: %+v, %q, want %s", c.memory, exit, &out, c.want)
		}
	}
}

// A host that has little memory left is not for runs that nothing holds.
func TestWatchKeepsAFloor(t *testing.T) {
	w := &watch{limits: Limits{Memory: 1 << 40}}
	var err error
	scratch, err := openPath("/dev/shm")
	if err != nil {
		t.Fatal(err)
	}
	if w.meter, err = newMemoryMeter(scratch.file()); err != nil {
		t.Fatal(err)
	}
	w.meter.memory = true
	if w.look(0); w.found.Floor {
		t.Errorf("without a floor: %+v", w.found)
	}
	if w.setFloor(); w.floor <= 0 || w.floor > memoryFloor {
		t.Errorf("the floor is %d bytes", w.floor)
	}
	available := w.meter.available()
	if available <= 0 {
		t.Fatal("the host does not say how much memory is available")
	}
	w.floor = available * 2
	if w.look(0); !w.found.Floor || w.found.Memory {
		t.Errorf("below the floor: %+v", w.found)
	}
	var exit Exit
	if exit.seen(w.found); exit.Limit != "memory" || !exit.LimitEnded || !exit.HostShort {
		t.Errorf("%+v", exit)
	}
}
