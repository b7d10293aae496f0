package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// killable is a workspace of the kill tests.
type killable struct {
	t          *testing.T
	base       string
	dir, state string
}

func newKillable(t *testing.T, base string) killable {
	t.Helper()
	tmp, err := os.MkdirTemp(base, "overlay-kill-")
	if err != nil {
		t.Fatal(err)
	}
	k := killable{t, tmp, filepath.Join(tmp, "ws"), filepath.Join(tmp, "state")}
	t.Cleanup(func() {
		if _, err := os.Lstat(tmp); err == nil {
			k.remove() // the test failed
		}
	})
	must(os.Mkdir(k.dir, 0o755))
	changeSet{dir: k.dir}.setup()
	return k
}

func (k killable) remove() {
	_ = filepath.WalkDir(k.base, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(k.base); err != nil {
		// A directory that was closed when the walk read it is open now.
		exec.Command("chmod", "-R", "u+rwx", k.base).Run()
		if err := os.RemoveAll(k.base); err != nil {
			k.t.Error(err)
		}
	}
}

// done does something to its end, and returns the number of calls that it made.
func (k killable) done(what string) (calls int) {
	k.t.Helper()
	if err := attempt(k.dir, k.state, what, func() { calls++ }); err != nil {
		k.t.Fatalf("%s: %v", what, err)
	}
	return calls
}

// killedAt starts a server that does something, and reports whether it came to the n-th call, before which it is
// killed.
func (k killable) killedAt(what string, n int) bool {
	k.t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{asKilled, k.dir, k.state, what, strconv.Itoa(n)}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == unix.SIGKILL {
		return true
	}
	if err != nil {
		k.t.Fatalf("%s %d: %v\n%s", what, n, err, out)
	}
	return false
}

// opened opens the workspace, which recovers, and closes it again. Nothing but the history may be left.
func (k killable) opened(context string) (notes []string) {
	k.t.Helper()
	w, err := Open(k.dir, k.state, Defaults())
	if err != nil {
		k.t.Fatalf("%s: open: %v", context, err)
	}
	notes = w.TakeNotes()
	if kept := w.Interrupted(); len(kept) > 0 {
		k.t.Fatalf("%s: kept %v: %v", context, kept, notes)
	}
	base := w.scratch.base.path
	if err := w.Close(); err != nil {
		k.t.Fatalf("%s: close: %v", context, err)
	}
	for _, dir := range []string{base, w.state} {
		names, err := os.ReadDir(dir)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, n := range names {
			if !slices.Contains([]string{"lock", "history", "layers", "landings", "journal.new", "waiting", "place", "place.new"}, n.Name()) {
				k.t.Errorf("%s: left %s in %s", context, n.Name(), dir)
			}
		}
	}
	return notes
}

// hosts is what the host's own edits during the run make of a snapshot that was taken before.
func hosts(before map[string]string) map[string]string {
	out := maps.Clone(before)
	for i := range changeSets {
		for _, name := range []string{"conflict", "conflict-deleted"} {
			path := fmt.Sprintf("/%s%d", name, i)
			out[path] = strings.Replace(out[path], "before\n", "host's\n", 1)
		}
	}
	return out
}

// undated takes inode and mtime off a snapshot.
func undated(s map[string]string) map[string]string {
	out := map[string]string{}
	for path, what := range s {
		out[path], _, _ = strings.Cut(what, " inode ")
	}
	return out
}

// exceptEdited takes off the files that the host edits, whose times it set.
func exceptEdited(s map[string]string) map[string]string {
	out := maps.Clone(s)
	maps.DeleteFunc(out, func(path, _ string) bool { return strings.HasPrefix(path, "/conflict") })
	return out
}

// points are the calls to kill at: each step-th, and on other filesystems than the disk fewer, since what differs there
// is no more than what the calls answer.
func points(filesystem string, calls, step int) (all []int) {
	if filesystem != "disk" {
		step *= 4
	}
	if *everyKill {
		step = 1
	}
	for n := 1; n < calls; n += step {
		all = append(all, n)
	}
	return append(all, calls)
}

// waits reports whether the run waits for review. It must be one that can land.
func (k killable) waits(context string) bool {
	k.t.Helper()
	w, err := Open(k.dir, k.state, Defaults())
	if err != nil {
		k.t.Fatal(err)
	}
	defer w.Close()
	waiting, err := w.Waiting(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	for _, r := range waiting {
		if r.Run != "k1" || r.Fault != nil {
			k.t.Fatalf("%s: waits %+v", context, r)
		}
	}
	return len(waiting) == 1
}

// killAt kills a server at some of its calls, each in a workspace that prepare made, and looks at what
// the next one makes of it. look sees each workspace afterwards.
func killAt(t *testing.T, filesystem, base, what string, calls, step int, after map[string]string, prepare func(killable), look func(k killable, context string, landed bool)) {
	all := points(filesystem, calls, step)
	landed, took := 0, 0
	for i, n := range all {
		k := newKillable(t, base)
		prepare(k)
		before := snapshot(t, k.dir, true)
		if !k.killedAt(what, n) {
			t.Fatalf("call %d was not made", n)
		}
		context := fmt.Sprintf("killed at call %d of %d", n, calls)
		if i%3 == 0 {
			// The recovery is killed, and the next one, and the one after that.
			for _, m := range []int{1 + i%17, 2 + i*7%113, 3 + i*5%397} {
				if !k.killedAt("recover", m) {
					break
				}
			}
		}
		k.opened(context)
		got := snapshot(t, k.dir, true)
		done := maps.Equal(undated(got), after)
		if done {
			landed++
		} else if took++; maps.Equal(exceptEdited(got), exceptEdited(before)) {
			if diff := cmp.Diff(undated(hosts(before)), undated(got)); diff != "" {
				t.Fatalf("%s: (-before +got):\n%s", context, diff)
			}
		} else {
			t.Fatalf("%s: neither what was before (-before +got):\n%s\nnor what would be after (-after +got):\n%s", context,
				cmp.Diff(exceptEdited(before), exceptEdited(got)), cmp.Diff(after, undated(got)))
		}
		look(k, context, done)
		k.remove()
	}
	t.Logf("%d calls; killed at %d of them: %d were taken back, %d done", calls, len(all), took, landed)
	if landed == 0 || took == 0 {
		t.Error("killing came always before it was done, or always after")
	}
}
