package overlay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// onOverlay makes a workspace that is an overlay itself, as in a container: what setup makes lies in its lower
// layer.
func onOverlay(t *testing.T, setup string, change ...func(*Config)) *fixture {
	t.Helper()
	f := emptyFixture(t, os.TempDir())
	f.host(setup)
	lower := filepath.Join(f.base, "image")
	if err := os.Rename(f.dir, lower); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"container", "container.work", "ws"} {
		if err := os.Mkdir(filepath.Join(f.base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mountOn(t, "overlay", "none", f.dir, 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr",
		lower, filepath.Join(f.base, "container"), filepath.Join(f.base, "container.work")))
	f.open(change...)
	return f
}

const (
	awaySetup = `umask 022; mkdir -p d/old/deep kind ro many; for f in edited gone d/x d/old/deep/y kind/x ro/x mode touched same; do echo 1 > $f; done
		echo 1 > script; chmod 755 script; chmod 555 ro; ln -s here link; for i in 1 2 3 4 5 6 7 8 9; do echo $i > many/$i; done; touch -d 2001-02-03 d many script`
	awayScript = `umask 022; echo 2 >> edited; rm gone; rm -r d; mkdir d; echo 2 > d/new; rm -r kind; echo 2 > kind; chmod 600 mode
		touch -d '2020-01-02 03:04:05.123456789' touched; echo 2 > script; ln -sf there link; mkdir -p new/sub/empty; echo 2 > new/sub/f; ln new/sub/f new/g; ln new/g top
		chmod 700 new/sub; touch -d '2011-01-01 00:00:00.5' new/sub new/g; truncate -s 50M new/sparse; printf x >> new/sparse; ln -s /nowhere new/l; rm -r many/1 many/2
		chmod 2755 new/sub/empty; mkdir closed; echo 2 > closed/x; chmod 500 closed; echo 2 > same`
	awayMeanwhile = "echo host > same"
	// everything that a landing is to keep
	awayManifest = `find . -mindepth 1 -name .airlock -prune -o -printf '%P %y %m ' -type d -printf '\n' -o -printf '%n %s %l' \( -name 'same*' -printf '\n' -o -newermt 2022-01-01 -printf ' now\n' -o -printf ' %T+\n' \) | sort
		find new closed -type d -printf '%P %T+\n' -newermt 2022-01-01 2>/dev/null | grep 2011 || true; find . -name .airlock -prune -o -type f -size -2M -exec sha256sum {} + | sort -k 2; test ! -e top || test new/g -ef top; test ! -e new/sparse || test $(stat -c %b new/sparse) -lt 1000`
)

// TestOnOverlay: a workspace that is an overlay itself lands what a plain one does.
func TestOnOverlay(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	plain := onDisk(t, awaySetup)
	want := plain.landed(awayScript, awayMeanwhile)
	f := onOverlay(t, awaySetup)
	txn, got := f.otherwise(awayScript, func() { f.host(awayMeanwhile) })
	if txn.copied != nil || txn.layers == txn.dir {
		t.Errorf("the layer was not on another filesystem: %s, %+v", txn.layers.path, txn.copied)
	}
	unnamed := func(r Report) string {
		return strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf("%+v", r), "conflict-r1", "conflict"), "conflict-r2", "conflict")
	}
	if unnamed(want) != unnamed(got) || len(want.Conflicts) != 1 {
		t.Errorf("on an overlay %+v\nplain         %+v", got, want)
	}
	plain.host("for f in *.conflict-* many/*.conflict-*; do test ! -e $f || mv $f ${f%-r*}; done")
	f.host("for f in *.conflict-* many/*.conflict-*; do test ! -e $f || mv $f ${f%-r*}; done")
	if want, got := plain.host(awayManifest), f.host(awayManifest); want != got {
		t.Errorf("on an overlay\n%s\nplain\n%s", got, want)
	}
	// And back.
	wantBack, err := plain.Undo(context.Background(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	gotBack, err := f.Undo(context.Background(), txn.run)
	if err != nil {
		t.Fatal(err)
	}
	if unnamed(wantBack) != unnamed(gotBack) {
		t.Errorf("undone on an overlay %+v\nplain                %+v", gotBack, wantBack)
	}
	if want, got := plain.host(awayManifest), f.host(awayManifest); want != got {
		t.Errorf("undone on an overlay\n%s\nplain\n%s", got, want)
	}
}

// TestOverlayTakenBack: a landing on an overlay that fails at any moment is taken back, directories of the
// lower layer that could not be moved out included.
func TestOverlayTakenBack(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	// landing lands with an edit at one access of the many that it makes.
	landing := func(at int) (f *fixture, report Report, points int) {
		f = onOverlay(t, awaySetup, func(c *Config) { c.OnConflict = "discard" })
		before := f.host(awayState)
		_, report = f.otherwise(awayScript, func() {
			f.root.hook = func() {
				if points++; points == at {
					write(t, f.dir+"/edited", "host\n")
				}
			}
		})
		if !report.Landed {
			f.host("grep -qx host edited; echo 1 > edited")
			if after := f.host(awayState); after != before {
				t.Fatalf("edited at %d: %+v\nbefore\n%s\nafter\n%s", at, report, before, after)
			}
		}
		return f, report, points
	}
	_, _, all := landing(0)
	back := 0
	for at := all / 2; at < all; at += max(1, all/8) {
		f, report, _ := landing(at)
		if removed, _ := filepath.Glob(f.base + "/container/d/old"); !report.Landed && removed != nil {
			back++ // it was removed, and is there again, not that of the lower layer
		}
	}
	if back == 0 {
		t.Errorf("of %d accesses none came after a directory was removed", all)
	}
}

const awayState = `find . -mindepth 1 -name .airlock -prune -o -printf '%P %y %m %s %l\n' | sort; find . -name .airlock -prune -o -type f -exec sha256sum {} + | sort -k 2`

// otherwise runs a script on a workspace that the kernel takes no overlay of at first, as the server does.
// before is called before the landing.
func (f *fixture) otherwise(script string, before func()) (*Txn, Report) {
	f.t.Helper()
	for {
		txn := f.begin()
		if why := tryOn(f.t, txn.Layers(), script); why != "" {
			if !f.Refuse(f.dir) {
				f.t.Fatal(why)
			}
			if _, err := txn.Discard("another way"); err != nil {
				f.t.Fatal(err)
			}
			continue
		}
		before()
		report := f.land(txn)
		f.root.hook = nil
		return txn, report
	}
}

// TestAwayPlaces: layers that can't lie where landings do are in the state directory, then in memory, and at
// last there is a copy; nothing is left anywhere.
func TestAwayPlaces(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	var f *fixture
	t.Cleanup(func() {
		if f == nil {
			return
		}
		if left, _ := filepath.Glob("/dev/shm/airlock-*-" + filepath.Base(f.Workspace.state)); left != nil {
			t.Errorf("left: %q", left)
		}
	})
	f = onOverlay(t, "echo 1 > f")
	var places []string
	for n := 0; ; n++ {
		txn := f.begin()
		places = append(places, txn.layers.path)
		if txn.copied != nil {
			places = append(places, txn.copied.tree.path)
			runOn(t, txn.Layers(), "echo 2 > f")
			if got := f.land(txn).Summary(); got != "workspace: 1 modified: f" {
				t.Error(got)
			}
			break
		}
		if _, err := txn.Discard("another way"); err != nil {
			t.Fatal(err)
		}
		if !f.Refuse(f.dir) || n > 5 {
			t.Fatalf("no copy: %q", places)
		}
	}
	if f.Refuse(f.dir) {
		t.Error("there is still another way")
	}
	if len(places) != 4 || !strings.HasPrefix(places[0], f.state+"/") || !strings.HasPrefix(places[1], "/dev/shm/airlock-") || !strings.HasPrefix(places[3], places[2]+"/copy") {
		t.Errorf("layers in %q", places)
	}
}
