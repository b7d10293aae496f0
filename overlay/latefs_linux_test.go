package overlay

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// A filesystem of its own, in namespaces of its own, fails in the middle of a landing: the test binary starts
// itself there, for each way to fail and each moment of it.

const onSmall = "airlock-overlay-test-small"

// failings are what happens to the filesystem, and how it is mended.
var failings = map[string]struct {
	errno       unix.Errno
	break_, end func(dir string)
}{
	"full": {
		unix.ENOSPC,
		func(dir string) {
			f, err := os.Create(filepath.Join(dir, "filler"))
			must(err)
			for b := make([]byte, 1<<20); len(b) > 0; {
				if n, err := f.Write(b); err != nil && n == 0 {
					b = b[:len(b)/2]
				}
			}
			must(f.Close())
		},
		func(dir string) { must(os.Remove(filepath.Join(dir, "filler"))) },
	},
	"no descriptors": {
		unix.EMFILE,
		func(string) { setDescriptors(0) },
		func(string) { setDescriptors(1024) },
	},
}

func setDescriptors(n uint64) {
	// Not the hard one, which could not be raised again.
	must(unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: 4096}, nil))
}

// small is that process: DIR HOW N. The filesystem fails before the N-th call of the landing, for all of the
// rest of it. It prints what is to be known.
func small() {
	dir, how := os.Args[1], os.Args[2]
	var n int
	_, err := fmt.Sscan(os.Args[3], &n)
	must(err)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		fmt.Fprintln(os.Stderr, "mount:", err)
		os.Exit(exitNoMount)
	}
	setDescriptors(1024)
	ws, state := filepath.Join(dir, "ws"), filepath.Join(dir, "state")
	must(os.Mkdir(ws, 0o755))
	changeSet{dir: ws}.setup()
	calls, counting := 0, false
	hook := func() {
		if !counting {
			return
		}
		if calls++; calls == n {
			failings[how].break_(dir)
		}
	}
	c := Defaults()
	f, err := newFilter(c)
	must(err)
	w, err := open(ws, state, c, f, hook)
	must(err)
	txn, err := w.Begin(context.Background(), "s1")
	must(err)
	changeSet{ws, txn.Layer().Upper}.run()
	before := snapshotOf(ws)
	counting = true
	report, err := txn.Land(context.Background())
	counting = false
	if calls >= n {
		failings[how].end(dir)
	}
	fmt.Printf("calls %d\n", calls)
	switch {
	case err == nil && report.Landed:
		fmt.Println("landed")
	case is(err, failings[how].errno):
		fmt.Println("failed, and says why")
	default:
		fmt.Printf("landed %v, error %v\n", report.Landed, err)
	}
	must(w.Close())
	// What could not be taken back then is, by the next server.
	w, err = Open(ws, state, c)
	must(err)
	after := snapshotOf(ws)
	if kept := w.Interrupted(); len(kept) > 0 {
		fmt.Printf("kept %v\n", kept)
	}
	must(w.Close())
	if err == nil && !report.Landed {
		fmt.Print(cmp.Diff(before, after))
	}
}

// snapshotOf is snapshot for a process that is no test; it panics where that would fail.
func snapshotOf(dir string) map[string]string { return undated(snapshot(&testing.T{}, dir, false)) }

// TestFailingFilesystem: whatever the filesystem refuses, at whatever moment, and for however long, the
// workspace is what it was, or the landing is done.
func TestFailingFilesystem(t *testing.T) {
	for how := range failings {
		t.Run(how, func(t *testing.T) {
			outcome := func(n int) (calls int, landed bool) {
				cmd := exec.Command("/proc/self/exe")
				cmd.Args = []string{onSmall, t.TempDir(), how, fmt.Sprint(n)}
				var errs strings.Builder
				cmd.Stderr = &errs
				cmd.SysProcAttr = &syscall.SysProcAttr{
					Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
					UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
					GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
					Pdeathsig:   syscall.SIGKILL,
				}
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("call %d: %v\n%s%s", n, err, out, errs.String())
				}
				said, rest, _ := strings.Cut(string(out), "\n")
				if _, err := fmt.Sscanf(said, "calls %d", &calls); err != nil {
					t.Fatalf("%q", out)
				}
				if rest != "landed\n" && rest != "failed, and says why\n" {
					t.Errorf("call %d of %d: %s", n, calls, rest)
				}
				return calls, rest == "landed\n"
			}
			calls, landed := outcome(1 << 30)
			if !landed {
				t.Fatal("without a failure it does not land")
			}
			failed, step := 0, max(1, calls/7)
			if *everyKill {
				step = 1
			}
			for n := 1; n <= calls; n += step {
				if _, landed := outcome(n); !landed {
					failed++
				}
			}
			if failed == 0 {
				t.Error("nothing failed")
			}
			t.Logf("%d calls, %d failures", calls, failed)
		})
	}
}
