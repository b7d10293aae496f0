package sandbox

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var threadRuns = flag.Int("thread-runs", 40, "runs that TestAbandonedThreads starts, 20 at a time, from threads that then end")

// stamped notes when the first line "end" was written to it.
type stamped struct {
	text []byte
	at   time.Time
}

func (w *stamped) Write(b []byte) (int, error) {
	if w.at.IsZero() && bytes.Contains(b, []byte("end\n")) {
		w.at = time.Now()
	}
	w.text = append(w.text, b...)
	return len(b), nil
}

func init() {
	// Starts a process that stands still under its tracer, which is this one.
	roles["tracer"] = func(args []string) {
		runtime.LockOSThread()
		cmd := exec.Command("/bin/sleep", "600")
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("traced")
		time.Sleep(time.Hour)
	}
	// Takes the orphans of its own descendants, as init does, and reaps none.
	roles["subreaper"] = func(args []string) {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			fmt.Println(err)
		}
		cmd := exec.Command("/bin/sh", "-c", "sleep 600 & sleep 0 &")
		cmd.Stdout = os.Stdout // a pipe, which the orphans hold
		if err := cmd.Run(); err != nil {
			fmt.Println(err)
		}
		fmt.Println("orphans")
		time.Sleep(time.Hour)
	}
}

// Whatever the main process leaves behind, and in whatever state, the run is over a second after it, and says how
// much was ended.
func TestLeftovers(t *testing.T) {
	n := newNative(t)
	for _, test := range []struct {
		name, script string
		want         int // ended; -1 for any
	}{
		{"orphan", "(sleep 600 &)", 1},
		{"daemon", "setsid sh -c 'cd /; sleep 600 <&- >&- 2>&- &'; sleep 0.2", 1},
		{"double fork", `sh -c 'sh -c "sleep 600 &" &'; sleep 0.3`, 1},
		{"ignores signals", "(trap '' TERM INT HUP; sleep 600; :) & sleep 0.2", 1},
		{"stopped", "sleep 600 & kill -STOP $!; sleep 0.1", 1},
		{"stopped with its group", "setsid sh -c 'sleep 600 & kill -STOP 0' & sleep 0.3", 1},
		{"zombie that nobody reaps", "sh -c 'sleep 0 & exec sleep 600' & sleep 0.3", 1},
		{"only a zombie", "(sleep 0.05 &); sleep 0.3", 0},
		{"holds the output", "sleep 600 2>&1 & exec 2>/dev/null", 1},
		{"holds the input", "sleep 600 <&0 >/dev/null 2>&1 & sleep 0.1", 1},
		{"holds a pipe to the main process", "mkfifo /tmp/p; sleep 600 > /tmp/p & exec 9< /tmp/p", 1},
		{"traced", "/probe tracer & sleep 1", 1},
		{"with a reaper of its own", "/probe subreaper & sleep 1", 1},
		{"many", "for i in $(seq 50); do sleep 600 & done", 50},
		{"makes new ones all the time", "(while :; do sleep 0.01 & wait; done) & sleep 0.2", -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := mark(t)
			var out stamped
			spec := testSpec(t, "sh", "-c", ": $0; "+test.script+"; echo end", m)
			spec.Limits.Processes = 200
			p := startRun(t, n, spec, Stdio{Output: &out, Stdin: strings.NewReader("never read")})
			exit, err := p.Wait()
			took := time.Since(out.at)
			if test.want < 0 && exit.Ended > 0 {
				exit.Ended = test.want
			}
			if err != nil || exit != (Exit{Ended: test.want}) || !bytes.HasSuffix(out.text, []byte("end\n")) {
				t.Errorf("got %+v, %v, output %q; want %d ended", exit, err, out.text, test.want)
			}
			if took > time.Second {
				t.Errorf("the run was over %v after its main process", took)
			}
			if left := processesWith(t, m); left > 0 {
				t.Errorf("%d processes are left", left)
			}
		})
	}
}

// A run does not hang on the thread that started it: with a parent-death signal the kernel would kill it as soon as
// the Go runtime lets that thread go.
func TestAbandonedThreads(t *testing.T) {
	n := newNative(t)
	stop := make(chan struct{})
	var abandoning sync.WaitGroup
	defer abandoning.Wait()
	defer close(stop)
	abandoning.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				go runtime.LockOSThread() // a goroutine that ends locked takes its thread with it
			}
		}
	})
	threads := make(map[int]bool)
	for began := 0; began < *threadRuns; began += 20 {
		type started struct {
			p   Process
			out *bytes.Buffer
			tid int
			err error
		}
		runs := make(chan started)
		for range min(20, *threadRuns-began) {
			go func() {
				runtime.LockOSThread()
				out := new(bytes.Buffer)
				p, err := n.Start(t.Context(), testSpec(t, "sh", "-c", "sleep 0.5; echo ok"), Stdio{Output: out})
				runs <- started{p, out, unix.Gettid(), err}
			}()
		}
		var waiting sync.WaitGroup
		for range min(20, *threadRuns-began) {
			r := <-runs
			if r.err != nil {
				t.Error(r.err)
				continue
			}
			threads[r.tid] = true
			waiting.Go(func() {
				if exit, err := r.p.Wait(); err != nil || exit != (Exit{}) || r.out.String() != "ok\n" {
					t.Errorf("got %+v, %v, %q", exit, err, r.out)
				}
			})
		}
		waiting.Wait()
	}
	for tid := range threads {
		if unix.Access(fmt.Sprintf("/proc/self/task/%d", tid), unix.F_OK) != nil {
			return
		}
	}
	t.Error("control: every thread that started a run is still there")
}
