package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// cached is a cache of one test.
type cached struct {
	t    *testing.T
	base string
	*Cache
	runs int
}

func newCache(t *testing.T, limit int64) *cached {
	t.Helper()
	base := t.TempDir()
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwx", base).Run() })
	f := &cached{t: t, base: base}
	f.reopen(limit)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *cached) reopen(limit int64) {
	f.t.Helper()
	var err error
	if f.Cache, err = OpenCache(filepath.Join(f.base, "state"), f.base, limit, os.Geteuid(), os.Getegid()); err != nil {
		f.t.Fatal(err)
	}
}

// host does something in the cache, or beside it in $BASE.
func (f *cached) host(script string) {
	f.t.Helper()
	cmd := exec.Command("/bin/sh", "-euc", "umask 022; "+strictly(script))
	cmd.Dir, cmd.Env = f.Files(), append(os.Environ(), "BASE="+f.base)
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// after begins a run, and returns when it has done what the script says.
func (f *cached) after(script string) *CacheTxn {
	f.t.Helper()
	f.runs++
	txn, err := f.Begin(f.t.Context(), fmt.Sprintf("r%d", f.runs))
	if err != nil {
		f.t.Fatal(err)
	}
	if script != "" {
		runOn(f.t, []Layer{txn.Layer()}, "umask 022; "+script)
	}
	return txn
}

func (f *cached) land(txn *CacheTxn) {
	f.t.Helper()
	if err := txn.Land(f.t.Context()); err != nil {
		f.t.Error(err)
	}
	f.nothingLeft()
}

func (f *cached) nothingLeft() {
	f.t.Helper()
	if names, err := f.scratch.server.list(""); err != nil || len(names) > 0 {
		f.t.Errorf("left of runs: %q, %v", names, err)
	}
}

// content lists what the cache holds: "d/f=text", "d/ 0555", "l>text".
func (f *cached) content() string {
	f.t.Helper()
	var all []string
	err := filepath.WalkDir(f.Files(), func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == f.Files() {
			return err
		}
		at, _ := filepath.Rel(f.Files(), name)
		info, err := d.Info()
		if err != nil {
			return err
		}
		names, err := xattrNames(name, unix.Llistxattr)
		if err != nil || len(names) > 0 {
			f.t.Errorf("%s has the attributes %q, %v", at, names, err)
		}
		switch mode := info.Mode(); {
		case d.IsDir():
			all = append(all, fmt.Sprintf("%s/%o", at, mode.Perm()))
			if mode.Perm()&0o500 != 0o500 {
				return os.Chmod(name, 0o700)
			}
		case mode&fs.ModeSymlink != 0:
			text, _ := os.Readlink(name)
			all = append(all, at+">"+text)
		default:
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			all = append(all, at+"="+strings.TrimSpace(string(text)))
			if mode != 0o644 {
				all[len(all)-1] += fmt.Sprintf(" %v", mode)
			}
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestCacheLands(t *testing.T) {
	for _, tt := range []struct{ name, before, run, meanwhile, want string }{
		{"nothing", "echo 1 > f", "cat f; ls", "", "f=1"},
		{"files", "echo 1 > f; echo 1 > g; echo 1 > gone; echo 1 > stays", "echo 2 >> f; echo 2 > new; mv new g; rm gone", "", "f=1\n2 g=2 stays=1"},
		{"in directories of both", "mkdir -p d/e; echo 1 > d/e/f", "echo 2 > d/e/g; mkdir d/new; echo 2 > d/new/f; ln -s f d/new/l", "", "d/755 d/e/755 d/e/f=1 d/e/g=2 d/new/755 d/new/f=2 d/new/l>f"},
		{"a directory is removed", "mkdir -p d/e; echo 1 > d/e/f; echo 1 > g", "rm -r d", "", "g=1"},
		{"a directory is made anew", "mkdir -p d/e; echo 1 > d/old; echo 1 > d/e/f", "rm -r d; mkdir d; echo 2 > d/new", "", "d/755 d/new=2"},
		{"a directory is made anew below", "mkdir -p d/e; echo 1 > d/e/old", "rm -r d/e; mkdir d/e; echo 2 > d/e/new", "", "d/755 d/e/755 d/e/new=2"},
		{"kinds change", "mkdir d; echo 1 > d/f; echo 1 > f; ln -s f l; ln -s f m", "rm -r d f l m; echo 2 > d; mkdir f; echo 2 > f/g; echo 2 > l; mkdir m", "", "d=2 f/755 f/g=2 l=2 m/755"},
		{"read-only directories", "mkdir -p m/a; echo 1 > m/a/f; chmod 555 m/a m", "chmod 755 m; mkdir -p m/b/c; echo 2 > m/b/c/f; chmod 555 m/b/c m/b m", "", "m/555 m/a/555 m/a/f=1 m/b/555 m/b/c/555 m/b/c/f=2"},
		{"read-only directories are removed", "mkdir -p m/a/b; echo 1 > m/a/b/f; chmod 555 m/a/b m/a m", "chmod -R u+w m; rm -r m", "", ""},
		{"closed directories", "mkdir e; echo 1 > e/f", "mkdir -p d/e; echo 2 > d/e/f; chmod 0 d/e; chmod 200 d; echo 2 > e/g; chmod 100 e", "", "d/200 d/e/0 d/e/f=2 e/100 e/f=1 e/g=2"},
		{"a closed root", "echo 1 > f", "echo 2 > g; chmod 0 .", "", "f=1 g=2"},
		{"set-ID bits, special files, attributes", "", "echo 2 > s; chmod 6755 s; mkfifo p; mkdir d; mkfifo d/p; echo 2 > d/s; chmod 4755 d/s", "", "d/755 d/s=2 -rwxr-xr-x s=2 -rwxr-xr-x"},
		{"hard links", "", "echo 2 > a; ln a b; mkdir d; ln a d/c; echo 3 >> d/c", "", "a=2\n3 b=2\n3 d/755 d/c=2\n3"},
		// Someone else lands meanwhile: the last writer of each file wins.
		{"the same file", "echo 1 > f", "echo 2 > f; echo 2 > n", "echo 3 > f; echo 3 > n; echo 3 > o", "f=2 n=2 o=3"},
		{"the same new directory", "", "mkdir d; echo 2 > d/f; echo 2 > d/g", "mkdir d; echo 3 > d/f; echo 3 > d/h", "d/755 d/f=2 d/g=2 d/h=3"},
		{"another kind", "", "mkdir d; echo 2 > d/f; echo 2 > e", "echo 3 > d; mkdir e; echo 3 > e/f", "d/755 d/f=2 e=2"},
		{"removed by both", "mkdir d; echo 1 > d/f; echo 1 > g", "rm -r d g", "rm -r d g", ""},
		{"a part of what was removed", "mkdir -p d/e; echo 1 > d/e/f", "echo 2 > d/e/g; echo 2 > n", "rm -r d", "n=2"},
		{"a link out, in the place of a directory", "mkdir d", "echo 2 > d/f", "rmdir d; mkdir $BASE/out; ln -s $BASE/out d", "d>BASE/out"},
		{"a link out, in the place of a new one", "", "mkdir d; echo 2 > d/f", "mkdir $BASE/out; ln -s $BASE/out d", "d/755 d/f=2"},
		{"a link out, in the place of a file", "echo 1 > f", "echo 2 > f", "rm f; echo 1 > $BASE/out; ln -s $BASE/out f", "f=2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newCache(t, 1<<30)
			f.host(tt.before)
			txn := f.after(tt.run)
			f.host(tt.meanwhile)
			f.land(txn)
			if got := strings.ReplaceAll(f.content(), f.base, "BASE"); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			out, _ := os.ReadDir(filepath.Join(f.base, "out"))
			if text, err := os.ReadFile(filepath.Join(f.base, "out")); len(out) > 0 || err == nil && string(text) != "1\n" {
				t.Errorf("outside: %v, %q", out, text)
			}
		})
	}
}

// What a run wrote goes with it, and those that go on at once see nothing of each other.
func TestCacheIsDiscarded(t *testing.T) {
	f := newCache(t, 1<<30)
	f.host("mkdir d; echo 1 > d/f; echo 1 > g")
	a, b := f.after("echo 2 > n; rm -r d; echo 2 > g"), f.after("")
	runOn(t, []Layer{b.Layer()}, "test ! -e n; cat d/f; mkdir -p b/x/y; chmod 0 b/x; chmod 555 b")
	for _, txn := range []*CacheTxn{a, b} {
		if err := txn.Discard(); err != nil {
			t.Error(err)
		}
	}
	f.nothingLeft()
	if got := f.content(); got != "d/755 d/f=1 g=1" {
		t.Errorf("got %q", got)
	}
}

// When it is full the largest directories go, unless others use them: then it takes no more.
func TestCacheMakesRoom(t *testing.T) {
	const fill = "mkdir -p %[1]s; head -c %[2]d /dev/zero > %[1]s/f"
	f := newCache(t, 1<<20)
	f.land(f.after(fmt.Sprintf(fill, "small", 100<<10)))
	f.land(f.after(fmt.Sprintf(fill, "large/locked", 700<<10) + "; chmod 500 large/locked; chmod 0 large"))
	if got := f.content(); !strings.Contains(got, "large") || !strings.Contains(got, "small") {
		t.Fatalf("within its limit: %.200q", got)
	}
	f.host("chmod 0 large")
	other := f.after("")
	if err := f.after(fmt.Sprintf(fill, "more", 400<<10)).Land(t.Context()); !errors.Is(err, errCacheBusy) {
		t.Errorf("while others use it: %v", err)
	}
	f.nothingLeftBut(other)
	if err := other.Discard(); err != nil {
		t.Error(err)
	}
	f.land(f.after(fmt.Sprintf(fill, "more", 400<<10)))
	names, err := f.files.list("")
	if diff := cmp.Diff([]string{"more", "small"}, names); diff != "" || err != nil {
		t.Errorf("beyond its limit (-want +got): %v\n%s", err, diff)
	}
	if size, known := f.size(); !known || size < f.measure() || size > 1<<20 {
		t.Errorf("takes %d at most, %d", size, f.measure())
	}
	if err := f.after(fmt.Sprintf(fill, "huge", 2<<20)).Land(t.Context()); !errors.Is(err, errCacheSmall) {
		t.Errorf("more than all of it: %v", err)
	}
	f.nothingLeft()
}

func (f *cached) nothingLeftBut(txn *CacheTxn) {
	f.t.Helper()
	if names, err := f.scratch.server.list(""); err != nil || len(names) != 1 || names[0] != txn.run {
		f.t.Errorf("left of runs: %q, %v", names, err)
	}
}

// What lies too deep does not land, and all else does.
func TestCacheDepth(t *testing.T) {
	f := newCache(t, 1<<30)
	f.host("mkdir -p a")
	txn := f.after("")
	deep := strings.Repeat("/d", maxCacheDepth+5)
	for _, dir := range []string{"a" + deep, "b" + deep, "z"} {
		if err := os.MkdirAll(filepath.Join(txn.upper.path, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := txn.Land(t.Context()); !errors.Is(err, errCacheDepth) {
		t.Errorf("got %v", err)
	}
	f.nothingLeft()
	if names, err := f.files.list(""); err != nil || strings.Join(names, " ") != "a z" {
		t.Errorf("landed: %q, %v", names, err)
	}
}

// What a run wrote that waits for review waits with it.
func TestCacheOfWaitingRuns(t *testing.T) {
	f := newCache(t, 1<<30)
	ctx := t.Context()
	for _, script := range []string{"echo 1 > f", "echo 2 > f", "echo 3 > f", ""} {
		if err := f.after(script).Park(); err != nil {
			t.Fatal(err)
		}
	}
	f.nothingLeft()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f.reopen(1 << 30)
	if got := f.content(); got != "" {
		t.Errorf("landed before the review: %q", got)
	}
	if err := errors.Join(f.DiscardWaiting(ctx, "r1"), f.LandWaiting(ctx, "r2"), f.LandWaiting(ctx, "r4"), f.LandWaiting(ctx, "r1")); err != nil {
		t.Error(err)
	}
	if got := f.content(); got != "f=2" {
		t.Errorf("got %q", got)
	}
	asked := 0
	for range 2 {
		err := f.KeepWaiting(ctx, func() ([]string, error) {
			asked++
			return []string{"r9"}, nil
		})
		if names, e := f.scratch.base.list(waitingName); err != nil || e != nil || len(names) > 0 {
			t.Errorf("waiting: %q, %v, %v", names, err, e)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	f.nothingLeft()
}

// Each workspace has its own, and that of one which has long been gone is removed.
func TestCachesOfSeveralWorkspaces(t *testing.T) {
	state, ws := t.TempDir(), t.TempDir()
	open := func(workspace string) *Cache {
		c, err := OpenCache(state, workspace, 1, os.Geteuid(), os.Getegid())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	a, gone, away := open(ws), open(filepath.Join(ws, "gone")), open(filepath.Join(ws, "away"))
	reviewed, going := open(filepath.Join(ws, "reviewed")), open(filepath.Join(ws, "going"))
	if a.Files() == gone.Files() {
		t.Fatal("one cache for two workspaces")
	}
	old := time.Now().Add(-2 * unusedFor)
	for _, c := range []*Cache{a, gone, away, reviewed, going} {
		txn, err := c.Begin(context.Background(), "r")
		if err != nil {
			t.Fatal(err)
		}
		switch c {
		case reviewed: // what it left waits with it
			if err = os.WriteFile(filepath.Join(txn.Layer().Upper, "f"), nil, 0o644); err == nil {
				err = txn.Park()
			}
		case going:
			t.Cleanup(func() { _ = txn.Discard() })
		default:
			err = txn.Discard()
		}
		if err != nil {
			t.Fatal(err)
		}
		if c != away {
			if err := os.Chtimes(filepath.Join(c.own.path, "lock"), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	open(ws)
	for c, want := range map[*Cache]bool{a: true, gone: false, away: true, reviewed: true, going: true} {
		if _, err := os.Stat(c.Files()); (err == nil) != want {
			t.Errorf("%s: %v", c.own.path, err)
		}
	}
}
