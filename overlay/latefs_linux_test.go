package overlay

import (
	"context"
	"errors"
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

// failing is what happens to the filesystem, and how it is mended.
type failing struct {
	errno       unix.Errno
	break_, end func(dir string)
	// image is set where the filesystem is one of a disk, which loses what was not synced and has to be mounted
	// anew.
	image bool
}

var failings = map[string]failing{
	"full": {
		errno: unix.ENOSPC,
		break_: func(dir string) {
			f, err := os.Create(filepath.Join(dir, "filler"))
			must(err)
			for b := make([]byte, 1<<20); len(b) > 0; {
				if n, err := f.Write(b); err != nil && n == 0 {
					b = b[:len(b)/2]
				}
			}
			must(f.Close())
		},
		end: func(dir string) { must(os.Remove(filepath.Join(dir, "filler"))) },
	},
	"no descriptors": {
		errno:  unix.EMFILE,
		break_: func(string) { setDescriptors(0) },
		end:    func(string) { setDescriptors(1024) },
	},
	"read-only": {errno: unix.EROFS, break_: breakDisk, end: mountAnew, image: true},
}

// breakDisk makes ext4 believe that it met an error: it gives its journal up and takes no writes from then on.
func breakDisk(dir string) {
	device := filepath.Base(strings.Fields(command("findmnt", "-n", "-o", "SOURCE", dir))[0])
	must(os.WriteFile(filepath.Join("/sys/fs/ext4", device, "trigger_fs_error"), []byte("1"), 0))
}

// mountDisk mounts a disk of a file beside dir, which is made if it is not there.
func mountDisk(dir string) {
	image := dir + ".img"
	if _, err := os.Stat(image); err != nil {
		must(os.WriteFile(image, nil, 0o600))
		must(os.Truncate(image, 8<<20))
		command("mkfs.ext4", "-q", image)
	}
	if out, err := exec.Command("mount", "-o", "loop,errors=remount-ro", image, dir).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "mount: %v: %s", err, out)
		os.Exit(exitNoMount)
	}
}

func mountAnew(dir string) {
	must(unix.Unmount(dir, 0)) // nothing there may be open by now
	mountDisk(dir)
}

func command(name string, args ...string) string {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		panic(fmt.Sprintf("%s: %v: %s", name, err, out))
	}
	return string(out)
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
	happens := failings[how]
	must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	if happens.image {
		mountDisk(dir)
	} else if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		fmt.Fprintln(os.Stderr, "mount:", err)
		os.Exit(exitNoMount)
	}
	setDescriptors(1024)
	ws, state := filepath.Join(dir, "ws"), filepath.Join(dir, "state")
	must(os.Mkdir(ws, 0o755))
	changeSet{dir: ws}.setup()
	if happens.image {
		command("sync", "-f", dir)
	}
	calls, counting := 0, false
	hook := func() {
		if !counting {
			return
		}
		if calls++; calls == n {
			happens.break_(dir)
		}
	}
	c := Defaults()
	c.Durable = happens.image
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
	broke := calls >= n
	if broke && !happens.image {
		happens.end(dir)
	}
	fmt.Printf("calls %d\n", calls)
	switch {
	case err == nil && report.Landed:
		fmt.Println("landed")
	case is(err, happens.errno):
		fmt.Println("failed, and says why")
	default:
		fmt.Printf("landed %v, error %v\n", report.Landed, err)
	}
	if err := w.Close(); broke && happens.image {
		happens.end(dir) // all that is open there has to be closed before
	} else {
		must(err)
	}
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
			if failings[how].image && os.Geteuid() != 0 {
				missing(t, "disk", unix.EPERM)
			}
			outcome := func(n int) (calls int, landed bool) {
				cmd := exec.Command("/proc/self/exe")
				cmd.Args = []string{onSmall, t.TempDir(), how, fmt.Sprint(n)}
				var errs strings.Builder
				cmd.Stderr = &errs
				cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
				if !failings[how].image {
					cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
					cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
					cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
				}
				out, err := cmd.Output()
				var exit *exec.ExitError
				if failings[how].image && errors.As(err, &exit) && exit.ExitCode() == exitNoMount {
					missing(t, "disk", errors.New(errs.String()))
				}
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
