package overlay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// swapping exchanges a directory of the workspace for a link that leads out of it, and back, as fast as
// it can.
type swapping struct {
	stop   chan struct{}
	done   sync.WaitGroup
	swaps  atomic.Int64
	dir, l string
}

func startSwapping(dir, link string) *swapping {
	s := &swapping{stop: make(chan struct{}), dir: dir, l: link}
	s.done.Go(func() {
		for {
			select {
			case <-s.stop:
				return
			default:
			}
			if unix.Renameat2(unix.AT_FDCWD, s.dir, unix.AT_FDCWD, s.l, unix.RENAME_EXCHANGE) == nil {
				s.swaps.Add(1)
			}
		}
	})
	return s
}

// end stops it, with the directory in its place.
func (s *swapping) end() {
	close(s.stop)
	s.done.Wait()
	if s.swaps.Load()%2 == 1 {
		must(unix.Renameat2(unix.AT_FDCWD, s.dir, unix.AT_FDCWD, s.l, unix.RENAME_EXCHANGE))
	}
}

// unread makes a tree whose atimes move with the first read.
func unread(t *testing.T, dir string) {
	t.Helper()
	makeDirs(t, filepath.Join(dir, "sub"))
	for _, name := range []string{"f", "gone", "sub/g", "secret"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("outside\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	age(t, dir)
}

// age sets every atime to last week. It does not read: it knows the names.
func age(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"f", "gone", "sub/g", "secret", "sub", ""} {
		times := []unix.Timespec{{Sec: time.Now().Add(-200 * time.Hour).Unix()}, {Nsec: unix.UTIME_OMIT}}
		err := unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(dir, name), times, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

// stats says everything of a tree that a read or a write in it would change. It does not list, which is
// a read.
func stats(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	for _, name := range []string{"", "f", "gone", "sub", "sub/g", "secret", "new", "f.conflict-r1"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, name), &st); err != nil {
			fmt.Fprintln(&b, name, err)
			continue
		}
		fmt.Fprintln(&b, name, st.Ino, st.Mode, st.Size, st.Mtim, st.Ctim, st.Atim)
	}
	return b.String()
}

// TestSwappedForLink: while a directory is swapped for a link to outside, and back, at every moment,
// nothing that goes through the workspace reads or writes anything outside.
func TestSwappedForLink(t *testing.T) {
	for fs, base := range bases(t) {
		t.Run(fs, func(t *testing.T) { swappedOn(t, base) })
	}
}

func swappedOn(t *testing.T, base string) {
	f := newFixture(t, base, `mkdir -p d/sub; for f in d/f d/gone d/sub/g; do echo inside > $f; done; ln -s "$BASE/outside" l`)
	outside := filepath.Join(f.base, "outside")
	unread(t, outside)

	// The control: who goes by paths does read and write outside.
	control := stats(t, outside)
	s := startSwapping(filepath.Join(f.dir, "d"), filepath.Join(f.dir, "l"))
	fooled := [2]bool{}
	for deadline := time.Now().Add(10 * time.Second); !(fooled[0] && fooled[1]) && time.Now().Before(deadline); {
		if b, err := os.ReadFile(filepath.Join(f.dir, "d", "f")); err == nil && string(b) == "outside\n" {
			fooled[0] = true
		}
		if err := os.WriteFile(filepath.Join(f.dir, "d", "secret"), []byte("inside\n"), 0o644); err == nil {
			b, err := os.ReadFile(filepath.Join(outside, "secret"))
			fooled[1] = fooled[1] || err == nil && string(b) == "inside\n"
		}
	}
	s.end()
	if !fooled[0] || !fooled[1] || stats(t, outside) == control {
		t.Fatalf("who goes by paths was not fooled: %v after %d swaps", fooled, s.swaps.Load())
	}
	removePath(t, filepath.Join(f.dir, "d", "secret"))
	unread(t, outside)

	before := stats(t, outside)
	s = startSwapping(filepath.Join(f.dir, "d"), filepath.Join(f.dir, "l"))
	landed, failed, conflicts, undone, recovered := 0, 0, 0, 0, 0
	ctx := context.Background()
	for i := range 30 {
		txn := f.begin()
		f.writeSwapped(txn, i)
		if i%5 == 4 {
			// Cut off: its steps are taken, and somebody else finds the journal.
			if f.cutOff(txn) {
				recovered++
			}
			continue
		}
		report, err := txn.Land(ctx)
		switch {
		case err != nil:
			failed++
		case len(report.Conflicts) > 0:
			conflicts++
		case report.Landed:
			landed++
		}
		_ = f.Diff(ctx, "", io.Discard)
		if i%3 == 0 {
			if _, err := f.Undo(ctx, ""); err == nil {
				undone++
			}
		}
	}
	s.end()
	if diff := cmp.Diff(before, stats(t, outside)); diff != "" {
		t.Errorf("outside (-before +after):\n%s", diff)
	}
	t.Logf("%d swaps: %d landed, %d with conflicts, %d failed; %d undone, %d taken back", s.swaps.Load(), landed, conflicts, failed, undone, recovered)
	if s.swaps.Load() < 1000 || landed+conflicts == 0 || recovered == 0 {
		t.Error("it did not come to it")
	}
}

// writeSwapped changes what is in the directory that is being swapped.
func (f *fixture) writeSwapped(txn *Txn, i int) {
	f.t.Helper()
	upper := txn.Layer().Upper
	makeDirs(f.t, filepath.Join(upper, "d", "sub"))
	for _, dir := range []string{"d", "d/sub"} {
		if err := unix.Setxattr(filepath.Join(upper, dir), "user.overlay.origin", []byte("x"), 0); err != nil {
			f.t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(upper, dir), 0o755); err != nil {
			f.t.Fatal(err)
		}
	}
	for _, name := range []string{"d/f", "d/new", "d/sub/g"} {
		if err := os.WriteFile(filepath.Join(upper, name), fmt.Appendln(nil, i), 0o644); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := unix.Mknod(filepath.Join(upper, "d/gone"), unix.S_IFCHR, 0); err != nil {
		f.t.Fatal(err)
	}
	if i%4 == 0 {
		removePath(f.t, filepath.Join(upper, "d/sub"))
		if err := unix.Mknod(filepath.Join(upper, "d/sub"), unix.S_IFCHR, 0); err != nil {
			f.t.Fatal(err)
		}
	}
}

// cutOff takes the steps of a landing and leaves it there, for the next one to take back.
func (f *fixture) cutOff(txn *Txn) bool {
	f.t.Helper()
	ctx := context.Background()
	p, _, err := txn.planned(ctx)
	if err == nil {
		l := txn.lander(p)
		if err = l.stage(ctx); err == nil {
			r, record := l.record("")
			if record == nil {
				record = f.writeJournal(r)
			}
			if err = record; err == nil {
				_ = l.take()
			}
		}
	}
	recovered := f.recover() == nil && err == nil
	if err := txn.end(); err != nil {
		f.t.Error(err)
	}
	return recovered
}
