package overlay

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// The kill tests start the test binary as a server that lands one large change set, and that ends
// itself with SIGKILL before the N-th call to the system that the landing makes: for every N up to the
// landing's end. What it lands is a changeSet; the workspace, and what it must be afterwards, is a killable's.

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
