package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// say prints the errno of a call, by its name.
func say(what string, err error) {
	var errno unix.Errno
	switch {
	case err == nil:
		fmt.Println(what, "ok")
	case errors.As(err, &errno):
		fmt.Println(what, unix.ErrnoName(errno))
	default:
		fmt.Println(what, err)
	}
}

func init() {
	roles["rename"] = func(args []string) {
		for ; len(args) > 1; args = args[2:] {
			say(args[0], unix.Rename(args[0], args[1]))
		}
	}
	// Renames a directory after it has made itself unreadable for others.
	roles["rename-undumpable"] = func(args []string) {
		say("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
		roles["rename"](args)
	}
	// The ruleset is no descriptor, so that nothing is restricted, but who knows that.
	roles["rename-landlocked"] = func(args []string) {
		_ = raw(unix.SYS_LANDLOCK_RESTRICT_SELF, ^uintptr(0))()
		roles["rename"](args)
	}
	// Renames the directory under a rain of signals.
	roles["rename-signalled"] = func(args []string) {
		every := unix.Timeval{Usec: 500}
		_, err := unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{Interval: every, Value: every})
		say("timer", err)
		roles["rename"](args)
	}
	// Thread i of COUNT renames t-i-j to n-i-j for each j, files f-i-j in between, and once tries
	// to get hold of "prize".
	roles["rename-threads"] = func(args []string) {
		count, _ := strconv.Atoi(args[0])
		each, _ := strconv.Atoi(args[1])
		var all sync.WaitGroup
		for i := range count {
			all.Go(func() {
				runtime.LockOSThread()
				if err := unix.Rename("prize", fmt.Sprintf("won-%d", i)); err == nil {
					fmt.Println("won")
				} else if err != unix.ENOENT {
					fmt.Println("prize", err)
				}
				for j := range each {
					for _, kind := range []string{"t", "f"} {
						name := fmt.Sprintf("%s-%d-%d", kind, i, j)
						if err := unix.Rename(name, "n"+name); err != nil {
							fmt.Println(name, err)
						}
					}
				}
			})
		}
		all.Wait()
	}
	roles["listen"] = func([]string) {
		runtime.LockOSThread()
		say("no_new_privs", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		_, err := installFilter(notified, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
		say("listen", err)
	}
	roles["rename-time"] = func(args []string) {
		count, _ := strconv.Atoi(args[0])
		names := [2]string{"a", "b"}
		if err := os.WriteFile("a", nil, 0o600); err != nil {
			fmt.Println(err)
			return
		}
		start := time.Now()
		for i := range count {
			if err := unix.Rename(names[i%2], names[1-i%2]); err != nil {
				fmt.Println(err)
				return
			}
		}
		fmt.Println(time.Since(start).Nanoseconds() / int64(count))
	}
}

// workspace makes a directory with files, each of which holds its own name.
func workspace(t testing.TB, files ...string) string {
	t.Helper()
	ws := t.TempDir()
	for _, f := range files {
		p := filepath.Join(ws, f)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return ws
}

func numbered(format string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(format, i)
	}
	return names
}

// on gives an edit of a spec for a run on ws, and looks for private names in its layer at the end.
func on(t *testing.T, ws string) func(*Spec) {
	return func(s *Spec) {
		upper := onOverlay(t, s, ws)
		t.Cleanup(func() {
			_ = filepath.WalkDir(upper, func(p string, d fs.DirEntry, err error) error {
				if d != nil && strings.HasPrefix(d.Name(), movingPrefix) {
					t.Errorf("%s is left (%v)", p, err)
				}
				return nil
			})
		})
	}
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRenameByPrograms(t *testing.T) { onEach(t, testRenameByPrograms) }

func testRenameByPrograms(t *testing.T, n Backend) {
	for _, test := range []struct{ program, script string }{
		{"python3", `python3 -c 'import os; os.rename("d", "n")'; ls d n/sub n`},
		{"python3", `python3 -c 'import shutil; shutil.move("d", "e"); os = __import__("os"); os.rename("e/d", "n")'; ls d n/sub n`},
		{"git", `git init -q . && git add d e && git mv d n && git mv n e && git mv e/n n && ls d n/sub n`},
		{"mv", "mv d n && ls d n/sub n"},
	} {
		t.Run(test.program, func(t *testing.T) {
			if _, err := exec.LookPath(test.program); err != nil {
				t.Skip(err)
			}
			out := shell(t, n, "("+test.script+") 2>&1 || true", on(t, workspace(t, "d/a", "d/sub/b", "e/x")))
			out = strings.ReplaceAll(out, "'d'", "d")
			expect(t, out, "ls: cannot access d: No such file or directory\nn:\na\nsub\n\nn/sub:\nb\n")
		})
	}
}

func TestRenameManyFiles(t *testing.T) { onEach(t, testRenameManyFiles) }

func testRenameManyFiles(t *testing.T, n Backend) {
	start := time.Now()
	out := shell(t, n, "/probe rename d n; ls n | wc -l; cat n/file-4711; ls", on(t, workspace(t, numbered("d/file-%d", 10000)...)))
	expect(t, out, "d ok\n10000\nd/file-4711n\n")
	t.Logf("10000 files: %v with the run itself and its making", time.Since(start).Round(time.Millisecond))
}

// What a rename passes through in init does not wait for the monitor of Go's runtime, nor does the run's end after it.
func TestRenameOneAfterTheOther(t *testing.T) { onEach(t, testRenameOneAfterTheOther) }

func testRenameOneAfterTheOther(t *testing.T, n Backend) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	const script = `python3 -c '
import os, time
def once(i):
    start = time.monotonic()
    os.rename("d%d" % i, "d%d" % (i + 1))
    return time.monotonic() - start
print(sorted(once(i) for i in range(40))[20] < 0.008)'`
	expect(t, shell(t, n, "mkdir d0; "+script+"; ls", on(t, workspace(t, "e/x"))), "True\nd40\ne\n")
}

func TestRenameDeepTree(t *testing.T) { onEach(t, testRenameDeepTree) }

func testRenameDeepTree(t *testing.T, n Backend) {
	deep := strings.Repeat("x/", 400)
	out := shell(t, n, "/probe rename d n; cat n/"+deep+"f; ls", on(t, workspace(t, "d/"+deep+"f")))
	expect(t, out, "d ok\nd/"+deep+"fn\n")
}

// Too deep for the descriptors that the run may have: the kernel's answer, and all as it was.
func TestRenameTooDeep(t *testing.T) { onEach(t, testRenameTooDeep) }

func testRenameTooDeep(t *testing.T, n Backend) {
	deep := strings.Repeat("x/", 400)
	few := func(s *Spec) { s.Limits.Files = 64 }
	out := shell(t, n, "/probe rename d n; find d | wc -l; cat d/"+deep+"f; ls", on(t, workspace(t, "d/"+deep+"f", "d/x/a")), few)
	expect(t, out, "d EXDEV\n403\nd/"+deep+"fd\n")
}

func TestRenameByThreads(t *testing.T) { onEach(t, testRenameByThreads) }

func testRenameByThreads(t *testing.T, n Backend) {
	const threads, each = 8, 10
	files := []string{"prize/x"}
	for i := range threads {
		for j := range each {
			files = append(files, fmt.Sprintf("t-%d-%d/sub/x", i, j), fmt.Sprintf("f-%d-%d", i, j))
		}
	}
	script := fmt.Sprintf("/probe rename-threads %d %d; ls -d nt-*/sub/x | wc -l; ls -d nf-* | wc -l; ls -d [tf]-* prize 2>/dev/null; cat won-*/x", threads, each)
	out := shell(t, n, script+"; echo", on(t, workspace(t, files...)))
	expect(t, out, fmt.Sprintf("won\n%d\n%d\nprize/x\n", threads*each, threads*each))
}

func TestRenameUnderSignals(t *testing.T) { onEach(t, testRenameUnderSignals) }

func testRenameUnderSignals(t *testing.T, n Backend) {
	var kernel unix.Utsname
	_ = unix.Uname(&kernel)
	out := shell(t, n, "/probe rename-signalled d n; ls n | wc -l", on(t, workspace(t, numbered("d/file-%d", 1000)...)))
	if strings.Contains(out, "EINTR") || strings.Contains(out, "ENOENT") {
		t.Logf("Linux %s; before 5.19 this may be", unix.ByteSliceToString(kernel.Release[:]))
	}
	expect(t, out, "timer ok\nd ok\n1000\n")
}

// A caller that is killed in the middle gets its directory moved, as if it had been killed after the call.
func TestRenameOfKilledCaller(t *testing.T) { onEach(t, testRenameOfKilledCaller) }

func testRenameOfKilledCaller(t *testing.T, n Backend) {
	out := shell(t, n, `exec 2>/dev/null; /probe rename d n >/dev/null & p=$!
		until test -e .airlock-move-0 || test -e n; do :; done; kill -9 $p; wait $p
		/probe rename e e2; ls; ls n | wc -l`, on(t, workspace(t, append(numbered("d/file-%d", 3000), "e/x")...)))
	expect(t, out, "e ok\ne2\nn\n3000\n")
}

// A run that ends in the middle of a rename leaves it done, not half.
func TestRenameAtTheEndOfTheRun(t *testing.T) { onEach(t, testRenameAtTheEndOfTheRun) }

func testRenameAtTheEndOfTheRun(t *testing.T, n Backend) {
	ws := workspace(t, numbered("d/file-%d", 3000)...)
	spec := testSpec(t, "sh", "-c", "/probe rename d n >/dev/null & until test -e .airlock-move-0 || test -e n; do :; done")
	upper := onOverlay(t, &spec, ws)
	exit, out := doRun(t, n, spec, "")
	if exit.Torn || exit.Code != 0 || exit.Ended != 1 {
		t.Errorf("%+v %s; the rename was to be running", exit, out)
	}
	if entries, err := os.ReadDir(filepath.Join(upper, "n")); len(entries) != 3000 {
		t.Errorf("%d files were moved of 3000 (%v)", len(entries), err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(upper, "d"), &st); err != nil || st.Mode != unix.S_IFCHR || st.Rdev != 0 {
		t.Errorf("the old name is not a whiteout: %o %d %v", st.Mode, st.Rdev, err)
	}
	if entries, err := os.ReadDir(upper); len(entries) != 2 {
		t.Errorf("the layer holds %v (%v)", entries, err)
	}
}

// What stays EXDEV.
func TestRenameRefused(t *testing.T) { onEach(t, testRenameRefused) }

func testRenameRefused(t *testing.T, n Backend) {
	files := []string{"d/a", "d/sub/b", "d/m/x", "e/x", "f"}
	const unchanged = "d\nd/a\nd/m\nd/m/x\nd/sub\nd/sub/b\ne\ne/x\nf\n"
	for _, test := range []struct {
		name, script, want string
		edit               func(ws string, s *Spec)
	}{
		{name: "control", script: "/probe rename d d1; /probe rename d1 d", want: "d ok\nd1 ok\n"},
		{name: "another filesystem", script: "mkdir /tmp/t; /probe rename d /tmp/n /tmp/t t f /tmp/f", want: "d EXDEV\n/tmp/t EXDEV\nf EXDEV\n"},
		{
			name: "a mount in it", script: "/probe rename d n d/sub d/n d/n d/sub", want: "d EXDEV\nd/sub ok\nd/n ok\n",
			edit: func(ws string, s *Spec) {
				s.Mounts = append(s.Mounts, Mount{Kind: MountBind, Source: ws + "/d/m", Target: ws + "/d/m"})
			},
		},
		{
			name: "a mount", script: "/probe rename e n d/sub e/n", want: "e EBUSY\nd/sub EXDEV\n",
			edit: func(ws string, s *Spec) {
				s.Mounts = append(s.Mounts, Mount{Kind: MountBind, Source: ws + "/e", Target: ws + "/e", Writable: true})
			},
		},
		{name: "init can't read the caller", script: "/probe rename-undumpable d n", want: "prctl ok\nd EXDEV\n"},
		{name: "Landlock", script: "/probe rename-landlocked f n; /probe rename n f d n", want: "f ok\nn ok\nd EXDEV\n"},
		// Seen from init, /proc/self is init.
		{name: "magic links", script: "/probe rename /proc/self/cwd/d n f /proc/self/cwd/g /proc/thread-self/cwd/g f", want: "/proc/self/cwd/d EXDEV\nf ok\n/proc/thread-self/cwd/g ok\n"},
		{name: "a second listener", script: "/probe listen", want: "no_new_privs ok\nlisten EBUSY\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ws := workspace(t, files...)
			out := shell(t, n, test.script+"; find * | sort", on(t, ws), func(s *Spec) {
				if test.edit != nil {
					test.edit(ws, s)
				}
			})
			expect(t, out, test.want+unchanged)
		})
	}
	t.Run("a listener where there is no overlay", func(t *testing.T) {
		expect(t, shell(t, n, "/probe listen"), "no_new_privs ok\nlisten ok\n")
	})
}

// Under a container engine that listens to system calls itself there is no second listener: runs work, and
// such renames don't.
func TestRenameUnderAnotherListener(t *testing.T) {
	var out string
	runChild(t, child("TestChildUnderAnotherListener", "x", 0), &out)
	expect(t, out, "d EXDEV\nf ok\n")
}

func TestChildUnderAnotherListener(t *testing.T) {
	childArgument(t)
	runtime.LockOSThread() // for the filter; runs are forked from this thread
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	unused := []rule{{"lookup_dcookie", 212, 18, notify, nil}}
	if _, err := installFilter(unused, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER); err != nil {
		t.Fatal(err)
	}
	*prepared = false // what is begun ahead is forked from another thread
	n := newNative(t)
	starter := isolating(n).maker.(*starter)
	starter.mu.Lock()
	if starter.cmd != nil { // so is this one
		_ = starter.end()
	}
	if err := starter.begin(); err != nil {
		t.Fatal(err)
	}
	starter.mu.Unlock()
	reportToParent(t, shell(t, n, "/probe rename d n f g", on(t, workspace(t, "d/a", "f"))))
}

func TestRenameListenerIsNotInherited(t *testing.T) { onEach(t, testRenameListenerIsNotInherited) }

func testRenameListenerIsNotInherited(t *testing.T, n Backend) {
	out := shell(t, n, "ls /proc/self/fd", on(t, workspace(t)))
	expect(t, out, "0\n1\n2\n3\n") // 3 is the directory that ls reads
}

// BenchmarkRename times the rename of a file inside of runs: with the notification, and in a run that has no
// overlay and thus none.
func BenchmarkRename(b *testing.B) {
	n := newNative(b)
	for _, name := range []string{"notified", "plain"} {
		b.Run(name, func(b *testing.B) {
			spec := testSpec(b, "/probe", "rename-time", strconv.Itoa(max(b.N, 1000)))
			if name == "notified" {
				onOverlay(b, &spec, b.TempDir())
				spec.Dir = "/tmp"
			}
			exit, out := doRun(b, n, spec, "")
			ns, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
			if err != nil || exit != (Exit{}) {
				b.Fatal(exit, out)
			}
			b.ReportMetric(ns, "ns/rename")
		})
	}
}
