package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mark is a text that no other process of the host has in its arguments.
func mark(t testing.TB) string {
	return fmt.Sprintf("airlock-mark-%d-%d", os.Getpid(), time.Now().UnixNano())
}

// processesWith counts the processes of the host whose arguments hold text.
func processesWith(t testing.TB, text string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(text)) {
			n++
		}
	}
	return n
}

// eventually waits up to two seconds, the promised time.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Errorf("not within two seconds: %s", what)
}

func TestBackgroundProcesses(t *testing.T) { onEach(t, testBackgroundProcesses) }

func testBackgroundProcesses(t *testing.T, n Backend) {
	for _, test := range []struct {
		name, script string
		want         int
	}{
		{"none", "true", 0},
		{"waited for", "sleep 0.1 & wait", 0},
		{"one", "sleep 600 & true", 1},
		{"with descendants, and in a session of its own", "sh -c ': $0; sleep 600; :' $0 & setsid sh -c ': $0; sleep 600; :' $0 & sleep 0.2", 2},
		{"that ignores signals", "(trap '' TERM HUP INT; while :; do sleep 1; done) & sleep 0.2", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := mark(t)
			exit, out := doRun(t, n, testSpec(t, "sh", "-c", test.script+"; echo end", m), "")
			if exit != (Exit{Ended: test.want}) || out != "end\n" {
				t.Errorf("got %+v, output %q; want %d ended", exit, out, test.want)
			}
			if left := processesWith(t, m); left > 0 {
				t.Errorf("%d processes are left", left)
			}
		})
	}
}

// Only once the run is known to be in a pid namespace of its own is everything in it killed.
func TestKillAllInside(t *testing.T) { onEach(t, testKillAllInside) }

func testKillAllInside(t *testing.T, n Backend) {
	if out := shell(t, n, "readlink /proc/self/ns/pid; readlink /proc/self/ns/user; echo $$"); !isolated(t, out) {
		t.Fatalf("the run is not in namespaces of its own: %q", out)
	}
	witness := exec.Command("sleep", "600")
	if err := witness.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { witness.Process.Kill(); witness.Wait() }()

	// The shell itself is spared by kill(2), what it started is not.
	exit, out := doRun(t, n, testSpec(t, "bash", "-c", "sleep 600 & kill -9 -1; wait; echo survived"), "")
	if exit != (Exit{}) || !strings.HasSuffix(out, "survived\n") {
		t.Errorf("got %+v, %q", exit, out)
	}
	if err := witness.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("a process of the host is gone: %v", err)
	}
}

// isolated compares the namespaces that a run prints with the test's own.
func isolated(t *testing.T, out string) bool {
	lines := strings.Fields(out)
	for i, kind := range []string{"pid", "user"} {
		own, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) < 3 || lines[i] == own || !strings.HasPrefix(lines[i], kind+":[") {
			return false
		}
	}
	return true
}

func TestContextEndsTheRun(t *testing.T) { onEach(t, testContextEndsTheRun) }

func testContextEndsTheRun(t *testing.T, n Backend) {
	m := mark(t)
	script := `trap '' TERM INT HUP; setsid sh -c ": $0; trap '' TERM; while :; do sleep 0.1; done" $0 & echo ready; sleep 600`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &firstWrite{once: make(chan struct{})}
	p, err := n.Start(ctx, testSpec(t, "sh", "-c", script, m), Stdio{Output: w})
	if err != nil {
		lacks(t, "userns", err)
	}
	<-w.once
	if processesWith(t, m) == 0 {
		t.Fatal("control: the run's processes can't be seen")
	}
	began := time.Now()
	cancel()
	exit, err := p.Wait()
	if err != nil || exit != (Exit{Killed: true}) {
		t.Errorf("got %+v, %v", exit, err)
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("it took %v", d)
	}
	if left := processesWith(t, m); left > 0 {
		t.Errorf("%d processes are left", left)
	}
}

func TestContextEndedBefore(t *testing.T) { onEach(t, testContextEndedBefore) }

func testContextEndedBefore(t *testing.T, n Backend) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := n.Start(ctx, testSpec(t, "true"), Stdio{})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(); err != nil || exit != (Exit{Killed: true}) && exit != (Exit{}) {
		t.Errorf("got %+v, %v", exit, err)
	}
}

// A run that never stops writing is ended like any other, and its output is read meanwhile.
func TestEndlessOutput(t *testing.T) { onEach(t, testEndlessOutput) }

func testEndlessOutput(t *testing.T, n Backend) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	out := cancellingWriter{left: 1 << 20, cancel: cancel}
	p, err := n.Start(ctx, testSpec(t, "yes"), Stdio{Output: &out})
	if err != nil {
		lacks(t, "userns", err)
	}
	if exit, err := p.Wait(); err != nil || !exit.Killed {
		t.Errorf("got %+v, %v", exit, err)
	}
	if out.left > 0 {
		t.Errorf("the output stopped %d bytes too early", out.left)
	}
}

// cancellingWriter ends a run once it has written so many bytes.
type cancellingWriter struct {
	left   int
	cancel func()
}

func (w *cancellingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left <= 0 {
		w.cancel()
	}
	return len(b), nil
}

// handOut sends its standard output to a socket.
func handOut(args []string) {
	fmt.Println("first")
	c, err := net.Dial("unix", args[0])
	if err == nil {
		_, _, err = c.(*net.UnixConn).WriteMsgUnix([]byte{0}, unix.UnixRights(1), nil)
	}
	fmt.Println("last", err)
}

func init() { roles["hand out"] = handOut }

// Whoever else holds the pipe of its output, a run ends when it ends, with all that it wrote.
func TestOutputHeldElsewhere(t *testing.T) { onEach(t, testOutputHeldElsewhere) }

func testOutputHeldElsewhere(t *testing.T, n Backend) {
	at := filepath.Join(realTempDir(t), "socket")
	l, err := net.Listen("unix", at) // and never takes what is sent
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	released := time.AfterFunc(20*time.Second, func() { l.Close() })
	spec := testSpec(t, "/probe", "hand out", at)
	spec.Mounts = append(spec.Mounts, Mount{Kind: MountBind, Source: at, Target: at})
	exit, out := doRun(t, n, spec, "")
	if !released.Stop() {
		t.Error("the run lasted as long as the other end of its output was open")
	}
	if exit != (Exit{}) || out != "first\nlast <nil>\n" {
		t.Errorf("got %+v, %q", exit, out)
	}
}

func TestFailingOutputDoesNotBlockTheRun(t *testing.T) {
	onEach(t, testFailingOutputDoesNotBlockTheRun)
}

func testFailingOutputDoesNotBlockTheRun(t *testing.T, n Backend) {
	p := startRun(t, n, testSpec(t, "sh", "-c", "head -c 1000000 /dev/zero"), Stdio{Output: brokenWriter{}})
	if exit, err := p.Wait(); err != nil || exit != (Exit{}) {
		t.Errorf("got %+v, %v", exit, err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestNothingLeaks(t *testing.T) { onEach(t, testNothingLeaks) }

func testNothingLeaks(t *testing.T, n Backend) {
	spec := testSpec(t, "true")
	spec.Limits = Limits{Processes: 64, Memory: 1 << 30}
	doRun(t, n, spec, "") // what is started once is started now
	count := func() (descriptors, goroutines int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries), runtime.NumGoroutine()
	}
	fds, goroutines := count()
	for i := range 15 {
		spec.Argv = [][]string{{"true"}, {"/no/such"}, {"sh", "-c", "sleep 9 & true"}}[i%3]
		doRun(t, n, spec, "input that is not read")
	}
	failing := spec
	failing.Dir = "/no/such"
	for range 10 {
		if _, err := n.Start(t.Context(), failing, Stdio{Stdin: strings.NewReader("x")}); err == nil {
			t.Fatal("it started")
		}
	}
	eventually(t, "as many descriptors and goroutines as before", func() bool {
		f, g := count()
		return f <= fds && g <= goroutines
	})
	if f, g := count(); t.Failed() {
		t.Logf("%d descriptors and %d goroutines, %d and %d before", f, g, fds, goroutines)
	}
}

func TestConcurrentRuns(t *testing.T) { onEach(t, testConcurrentRuns) }

func testConcurrentRuns(t *testing.T, n Backend) {
	results := make(chan error)
	const runs = 16
	for i := range runs {
		go func() {
			spec := testSpec(t, "sh", "-c", fmt.Sprintf("sleep 0.2; echo %d; exit %d", i, i))
			var out bytes.Buffer
			p, err := n.Start(t.Context(), spec, Stdio{Output: &out})
			if err != nil {
				results <- err
				return
			}
			exit, err := p.Wait()
			if err == nil && (exit != (Exit{Code: i}) || out.String() != fmt.Sprintln(i)) {
				err = fmt.Errorf("run %d: %+v, %q", i, exit, &out)
			}
			results <- err
		}()
	}
	for range runs {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
