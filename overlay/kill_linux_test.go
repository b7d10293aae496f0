package overlay

import (
	"context"
	"errors"
	"flag"
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

// The kill tests start the test binary as a server that lands one large change set, and that ends
// itself with SIGKILL before the N-th call to the system that the landing makes: for every N up to the
// landing's end.
//
// The file is long because everything in it is one experiment: the change set, the server that is killed,
// the recovery and what the workspace must be afterwards only make sense beside each other.

var everyKill = flag.Bool("every-kill", false, "kill at every call, not at some")

const asKilled = "airlock-overlay-test-killed"

// killed is that server: DIR STATE WHAT N.
func killed() {
	n, err := strconv.Atoi(os.Args[4])
	must(err)
	calls := 0
	must(attempt(os.Args[1], os.Args[2], os.Args[3], func() {
		if calls++; calls == n {
			must(unix.Kill(os.Getpid(), unix.SIGKILL))
			select {}
		}
	}))
	os.Exit(0)
}

// attempt opens the workspace, does what one of the tests kills, and closes it. hook comes before each call to the
// system of just that.
func attempt(dir, state, what string, hook func()) error {
	what, durably := strings.CutSuffix(what, "-durably")
	c := Defaults()
	c.Durable = durably
	f, err := newFilter(c)
	if err != nil {
		return err
	}
	counting := what == "recover"
	w, err := open(dir, state, c, f, func() {
		if counting {
			hook()
		}
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	var txn *Txn
	switch what {
	case "land", "park", "joint":
		if txn, err = w.Begin(ctx, "k1"); err != nil {
			return err
		}
		if what == "joint" {
			jointSet{dir}.run(txn)
			break
		}
		changeSet{dir, txn.Layer().Upper}.run()
		changeSet{dir: dir}.host()
	}
	counting = true
	switch what {
	case "land", "joint":
		_, err = txn.Land(ctx)
	case "park":
		_, err = txn.Park(ctx)
	case "undo":
		_, err = w.Undo(ctx, "k1")
	case "review":
		_, err = w.LandWaiting(ctx, "k1")
	}
	counting = false
	return errors.Join(err, w.Close())
}

// changeSet makes a workspace, what a run does to it, and what the host does meanwhile, with every
// kind of change a few times.
type changeSet struct{ dir, upper string }

const changeSets = 4

func (c changeSet) setup() {
	for i := range changeSets {
		at := func(name string) string { return filepath.Join(c.dir, fmt.Sprintf("%s%d", name, i)) }
		write := func(name, text string, mode os.FileMode) {
			must(os.WriteFile(at(name), []byte(text), 0o600))
			must(os.Chmod(at(name), mode))
		}
		write("modified", "before\n", 0o644)
		write("script", "before\n", 0o755)
		write("deleted", "deleted\n", 0o640)
		write("twice", "linked\n", 0o644)
		must(os.Link(at("twice"), at("linked")))
		must(os.Symlink("before", at("link")))
		must(os.Symlink("before", at("linkgone")))
		write("file-to-dir", "was a file\n", 0o600)
		write("file-to-link", "was a file\n", 0o600)
		must(os.Symlink("before", at("link-to-file")))
		must(os.Mkdir(at("dir-to-file"), 0o750))
		must(os.WriteFile(filepath.Join(at("dir-to-file"), "x"), []byte("x\n"), 0o644))
		must(os.MkdirAll(filepath.Join(at("gone"), "deep"), 0o755))
		must(os.WriteFile(filepath.Join(at("gone"), "deep", "x"), []byte("x\n"), 0o644))
		must(os.Symlink("x", filepath.Join(at("gone"), "deep", "l")))
		must(os.Mkdir(filepath.Join(at("gone"), "empty"), 0o711))
		must(os.Mkdir(at("mode"), 0o755))
		must(os.WriteFile(filepath.Join(at("mode"), "x"), []byte("x\n"), 0o644))
		must(os.Mkdir(at("ro"), 0o755))
		for _, name := range []string{"a", "b"} {
			must(os.WriteFile(filepath.Join(at("ro"), name), []byte("in ro\n"), 0o444))
		}
		must(os.Chmod(at("ro"), 0o555))
		write("conflict", "before\n", 0o644)
		write("conflict-deleted", "before\n", 0o644)
		write("kept", "kept\n", 0o644)
	}
}

func (c changeSet) run() {
	whiteout := func(path string) { must(unix.Mknod(path, unix.S_IFCHR, 0)) }
	mark := func(path, name, value string) { must(unix.Setxattr(path, "user.overlay."+name, []byte(value), 0)) }
	for i := range changeSets {
		at := func(name string) string { return filepath.Join(c.upper, fmt.Sprintf("%s%d", name, i)) }
		write := func(path, text string, mode os.FileMode) {
			must(os.WriteFile(path, []byte(text), 0o600))
			must(os.Chmod(path, mode))
		}
		write(at("modified"), "after\n", 0o644)
		mark(at("modified"), "origin", "x")
		write(at("script"), "before\n", 0o744)
		whiteout(at("deleted"))
		write(at("twice"), "after\n", 0o644)
		must(os.Symlink("after", at("link")))
		whiteout(at("linkgone"))
		must(os.MkdirAll(filepath.Join(at("file-to-dir"), "sub"), 0o755))
		write(filepath.Join(at("file-to-dir"), "sub", "x"), "new\n", 0o644)
		must(os.Chmod(at("file-to-dir"), 0o500))
		must(os.Symlink("after", at("file-to-link")))
		write(at("link-to-file"), "after\n", 0o644)
		write(at("dir-to-file"), "after\n", 0o644)
		whiteout(at("gone"))
		must(os.Mkdir(at("mode"), 0o700))
		mark(at("mode"), "origin", "x")
		must(os.Mkdir(at("ro"), 0o700))
		write(filepath.Join(at("ro"), "a"), "after\n", 0o644)
		whiteout(filepath.Join(at("ro"), "b"))
		mark(at("ro"), "origin", "x")
		must(os.Chmod(at("ro"), 0o555))
		write(at("conflict"), "run's\n", 0o644)
		whiteout(at("conflict-deleted"))
		write(at("new"), "new\n", 0o600)
		must(os.Link(at("new"), at("new-linked")))
		must(os.Symlink("/nowhere", at("new-link")))
		must(os.MkdirAll(filepath.Join(at("new-dir"), "__pycache__"), 0o755))
		write(filepath.Join(at("new-dir"), "__pycache__", "c"), "c\n", 0o644)
		must(os.MkdirAll(filepath.Join(at("new-dir"), "empty"), 0o755))
		write(filepath.Join(at("new-dir"), "x"), "new\n", 0o400)
		must(os.Chmod(at("new-dir"), 0o555))
	}
}

func (c changeSet) host() {
	for i := range changeSets {
		for _, name := range []string{"conflict", "conflict-deleted"} {
			must(os.WriteFile(filepath.Join(c.dir, fmt.Sprintf("%s%d", name, i)), []byte("host's\n"), 0o644))
		}
	}
}

// snapshot says what is in a directory: kind, mode and content, and of files and links, where identity
// is asked for, inode and mtime.
func snapshot(t *testing.T, dir string, identity bool) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := statAt(unix.AT_FDCWD, path)
		if err != nil {
			return err
		}
		s := fmt.Sprintf("%s %04o", kindNames[i.kind], i.mode)
		switch i.kind {
		case regular:
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			s += " " + string(text)
		case symlink:
			text, err := os.Readlink(path)
			if err != nil {
				return err
			}
			s = "link to " + text
		}
		if identity {
			s += fmt.Sprint(" inode ", i.ino)
			if i.kind != directory {
				s += fmt.Sprint(" of ", i.mtime)
			}
		}
		found[strings.TrimPrefix(path, dir)] = s
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

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

// TestKilledLanding: after a landing was killed, the workspace is what it was before, or what it would
// be after; and so it is if the recovery is killed, too.
func TestKilledLanding(t *testing.T) {
	for filesystem, base := range bases(t) {
		for what, step := range map[string]int{"land": 61, "land-durably": 301} {
			t.Run(filesystem+"/"+what, func(t *testing.T) {
				k := newKillable(t, base)
				calls := k.done(what)
				after := snapshot(t, k.dir, false)
				if _, landed := after["/new-dir0/x"]; !landed || after["/conflict0.conflict-k1"] == "" {
					t.Fatalf("it does not land: %v", after)
				}
				k.remove()
				killAt(t, filesystem, base, what, calls, step, after, func(k killable) {}, func(killable, string, bool) {})
			})
		}
	}
}

// TestKilledUndo is the same for an undo.
func TestKilledUndo(t *testing.T) {
	for filesystem, base := range bases(t) {
		t.Run(filesystem, func(t *testing.T) {
			land := func(k killable) { k.done("land") }
			k := newKillable(t, base)
			before := undated(hosts(snapshot(t, k.dir, true)))
			land(k)
			for path, what := range snapshot(t, k.dir, false) {
				if strings.Contains(path, ".conflict-k1") {
					before[path] = what // is not taken back
				}
			}
			calls := k.done("undo")
			after := snapshot(t, k.dir, false)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatalf("undo (-want +got):\n%s", diff)
			}
			k.remove()
			killAt(t, filesystem, base, "undo", calls, 61, after, land, func(killable, string, bool) {})
		})
	}
}

// TestKilledReview is the same for the landing of a run that waited: it has landed, or it waits again,
// and lands as it would have.
func TestKilledReview(t *testing.T) {
	for filesystem, base := range bases(t) {
		t.Run(filesystem, func(t *testing.T) {
			park := func(k killable) { k.done("park") }
			k := newKillable(t, base)
			park(k)
			calls := k.done("review")
			after := snapshot(t, k.dir, false)
			if _, landed := after["/new-dir0/x"]; !landed || after["/conflict0.conflict-k1"] == "" {
				t.Fatalf("it does not land: %v", after)
			}
			k.remove()
			killAt(t, filesystem, base, "review", calls, 151, after, park, func(k killable, context string, landed bool) {
				if waits := k.waits(context); waits == landed {
					t.Fatalf("%s: landed %v, and waits %v", context, landed, waits)
				}
				if landed {
					return
				}
				k.done("review")
				if diff := cmp.Diff(after, snapshot(t, k.dir, false)); diff != "" {
					t.Errorf("%s: landed afterwards (-want +got):\n%s", context, diff)
				}
			})
		})
	}
}

// TestKilledPark: a run whose server is killed before it waits is as if it had never been. That it does
// wait otherwise is what TestKilledReview begins with.
func TestKilledPark(t *testing.T) {
	for filesystem, base := range bases(t) {
		t.Run(filesystem, func(t *testing.T) {
			k := newKillable(t, base)
			calls := k.done("park")
			k.remove()
			for _, n := range points(filesystem, calls, 59) {
				k := newKillable(t, base)
				before := hosts(snapshot(t, k.dir, true))
				if !k.killedAt("park", n) {
					t.Fatalf("call %d was not made", n)
				}
				context := fmt.Sprintf("killed at call %d of %d", n, calls)
				k.opened(context)
				if diff := cmp.Diff(exceptEdited(before), exceptEdited(snapshot(t, k.dir, true))); diff != "" {
					t.Fatalf("%s: the workspace changed (-want +got):\n%s", context, diff)
				}
				if k.waits(context) {
					t.Errorf("%s: it waits", context)
				}
				k.remove()
			}
		})
	}
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

// TestKilledAndEdited: what someone makes of the workspace between the kill and the recovery is never
// lost, and everything else is as it was or as it would be.
func TestKilledAndEdited(t *testing.T) {
	edits := []struct{ path, script string }{
		{"modified0", "echo edit > modified0"},
		{"modified1", "echo edit > t && mv t modified1"},
		// In place, with the size and the time that it had.
		{"modified2", "sleep 0.03; touch -r modified2 ../t; printf 'edit2\\n' | head -c $(stat -c %s modified2) > modified2; touch -r ../t modified2"},
		{"new2", "test ! -e new2 || { touch -r new2 ../t; printf 'ed2\\n' > new2; touch -r ../t new2; }"},
		{"conflict2.conflict-k1", "f=conflict2.conflict-k1; test ! -e $f || { touch -r $f ../t; printf 'edit2\\n' > $f; touch -r ../t $f; }"},
		{"new0", "rm -f new0; echo edit > new0"},
		{"new1", "echo edit >> new1"},
		{"deleted0", "rm -f deleted0; echo edit > deleted0"},
		{"dir-to-file0", "test -d dir-to-file0 || echo edit > dir-to-file0"},
		{"new-dir0/mine", "mkdir -p new-dir0; chmod 755 new-dir0; echo edit > new-dir0/mine"},
		{"file-to-dir1/sub/x", "test ! -d file-to-dir1 || echo edit > file-to-dir1/sub/x"},
		{"gone0/mine", "mkdir -p gone0; echo edit > gone0/mine"},
		{"kept0", "echo edit > kept0"},
		{"ro0/mine", "chmod 755 ro0; echo edit > ro0/mine"},
		{"link0", "ln -sfn edit link0"},
	}
	for filesystem, base := range bases(t) {
		t.Run(filesystem, func(t *testing.T) {
			k := newKillable(t, base)
			calls := k.done("land")
			after := snapshot(t, k.dir, false)
			k.remove()
			for _, n := range points(filesystem, calls, 101) {
				k := newKillable(t, base)
				before := undated(hosts(snapshot(t, k.dir, true)))
				k.killedAt("land", n)
				cut := snapshot(t, k.dir, false)
				var script strings.Builder
				for _, e := range edits {
					fmt.Fprintf(&script, "( %s )\n", e.script)
				}
				cmd := exec.Command("/bin/sh", "-euc", script.String())
				cmd.Dir = k.dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("edits: %v: %s", err, out)
				}
				edited := snapshot(t, k.dir, false)
				k.opened(fmt.Sprintf("killed at call %d", n))
				got := snapshot(t, k.dir, false)
				// Every edit is at its path, or in a conflict file, or in what was moved with one.
				for path, what := range edited {
					if what == cut[path] || strings.HasPrefix(what, "directory") {
						continue
					}
					if !slices.ContainsFunc(slices.Collect(maps.Values(got)), func(w string) bool { return contentOf(w) == contentOf(what) }) {
						t.Errorf("killed at call %d: %s is lost: %s", n, path, what)
					}
					if got[path] != what && !heldBeside(got, path, what) {
						t.Errorf("killed at call %d: %s was %q, is %q", n, path, what, got[path])
					}
				}
				// What nobody edited is of before or of after, and all of it of one of them.
				one, other := 0, 0
				for path := range before {
					if slices.ContainsFunc(edits, func(e struct{ path, script string }) bool {
						return strings.HasPrefix(path, "/"+strings.SplitN(e.path, "/", 2)[0])
					}) || path == "" || before[path] == after[path] {
						continue
					}
					switch got[path] {
					case before[path]:
						one++
					case after[path]:
						other++
					default:
						t.Errorf("killed at call %d: %s is %q, neither %q nor %q", n, path, got[path], before[path], after[path])
					}
				}
				if one > 0 && other > 0 {
					t.Errorf("killed at call %d: %d paths of before and %d of after", n, one, other)
				}
				// And what was there before is somewhere.
				if one > 0 {
					for path, what := range before {
						if strings.HasPrefix(what, "file") && edited[path] == cut[path] && got[path] != what && !heldBeside(got, path, what) {
							t.Errorf("killed at call %d: what was at %s is lost", n, path)
						}
					}
				}
				k.remove()
			}
		})
	}
}

func contentOf(what string) string {
	if rest, ok := strings.CutPrefix(what, "file "); ok {
		_, content, _ := strings.Cut(rest, " ")
		return content
	}
	return what
}

// heldBeside reports whether a conflict file of a path, or of a directory that it lies in, has this.
func heldBeside(got map[string]string, path, what string) bool {
	for p, w := range got {
		i := strings.Index(p, ".conflict-")
		if i < 0 || contentOf(w) != contentOf(what) {
			continue
		}
		if of := p[:i]; of == path || strings.HasPrefix(path, of+"/") || parentPath(of) == parentPath(parentPath(path)) {
			return true
		}
	}
	return false
}
