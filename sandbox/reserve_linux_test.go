package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// waitingSpare has a spare begun for runs like spec, and returns it once it waits.
func waitingSpare(t *testing.T, n *Native, spec Spec) *spare {
	t.Helper()
	n.Prepare(spec)
	var have []*spare
	undisturbed(t, func() {
		n.reserve.mu.Lock()
		defer n.reserve.mu.Unlock()
		n.reserve.tell()
		n.reserve.fill()
		n.reserve.await(t.Context())
		have = slices.Clone(n.reserve.have)
	})
	if len(have) != 1 {
		startRun(t, n, spec, Stdio{}) // tells a host that can't from a fault
		t.Fatalf("%d spares wait", len(have))
	}
	return have[0]
}

// drop throws the spares away, and has none made.
func (r *reserve) drop() {
	r.mu.Lock()
	r.told, r.wanted, r.next = false, recipe{}, nil
	r.keep(func(*spare) bool { return false })
	r.mu.Unlock()
	r.beside.Wait()
}

// waits reports whether the spare still waits.
func waits(n *Native, s *spare) bool {
	n.reserve.mu.Lock()
	defer n.reserve.mu.Unlock()
	return slices.Contains(n.reserve.have, s)
}

// A run takes the spare if that shows what the host has now, and makes a sandbox of its own if not. It sees the same.
func TestSpareIsTakenWhileItIsFresh(t *testing.T) {
	onEach(t, func(t *testing.T, b Backend) {
		n := isolating(b)
		file := filepath.Join(t.TempDir(), "shown")
		replace := func(text string) {
			t.Helper()
			if err := os.WriteFile(file+"~", []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+"~", file); err != nil {
				t.Fatal(err)
			}
		}
		replace("one")
		real, _, err := FollowLinks(file)
		if err != nil {
			t.Fatal(err)
		}
		spec := testSpec(t, "cat", "/shown")
		spec.Mounts = append(spec.Mounts, Mount{Kind: MountBind, Source: real, Target: "/shown"})
		for _, test := range []struct {
			name   string
			change func()
			want   string
			taken  bool
		}{
			{"nothing changed", func() {}, "one", true},
			{"its content changed", func() {
				if err := os.WriteFile(file, []byte("two"), 0o644); err != nil {
					t.Fatal(err)
				}
			}, "two", true},
			{"another file took its place", func() { replace("three") }, "three", false},
		} {
			t.Run(test.name, func(t *testing.T) {
				taken := false
				undisturbed(t, func() {
					s := waitingSpare(t, n, spec)
					test.change()
					var out bytes.Buffer
					p := startRun(t, n, spec, Stdio{Output: &out})
					taken = p.(*process).pipes == s.pipes
					if exit, err := p.Wait(); exit != (Exit{}) || err != nil || out.String() != test.want {
						t.Errorf("the run printed %q, %+v, %v; want %q", &out, exit, err, test.want)
					}
				})
				if taken != test.taken {
					t.Errorf("the spare was taken: %v, want %v", taken, test.taken)
				}
			})
		}
	})
}

// A spare that does not fit stays for the runs that it fits, and never lends what it has to another one.
func TestSpareIsLeftByWhomItDoesNotFit(t *testing.T) {
	n := isolating(newBackend(t, "native"))
	spec := testSpec(t, "sh", "-c", "test -e /etc/f && cat /etc/f; ulimit -n")
	spec.Limits.Files = 100
	spec.Mounts = append(spec.Mounts, Mount{Kind: MountFile, Target: "/etc/f", Content: []byte("secret")})
	left := false
	undisturbed(t, func() {
		s := waitingSpare(t, n, spec)
		other := spec
		other.Mounts = other.Mounts[:len(other.Mounts)-1]
		if exit, out := doRun(t, n, other, ""); exit != (Exit{}) || out != "100\n" {
			t.Errorf("another run printed %q, %+v", out, exit)
		}
		other.Limits.Files = 50
		if exit, out := doRun(t, n, other, ""); exit != (Exit{}) || out != "50\n" {
			t.Errorf("a run with another limit printed %q, %+v", out, exit)
		}
		left = waits(n, s)
	})
	if !left {
		t.Error("the spare is gone")
	}
}

// When Ended has returned nothing of the run goes on, although its sandbox may not be down yet.
func TestEnded(t *testing.T) {
	onEach(t, func(t *testing.T, b Backend) {
		const m = "ended-marker"
		var out bytes.Buffer
		spec := testSpec(t, "sh", "-c", "(trap '' TERM HUP; while :; do echo x; done) & sleep 0.1; exit 3", m)
		p := startRun(t, b, spec, Stdio{Output: &out})
		exit, err := p.Ended()
		if err != nil || exit.Code != 3 || exit.Ended != 1 {
			t.Errorf("Ended: %+v, %v; want status 3 and one process that was ended", exit, err)
		}
		if left := processesWith(t, m); left > 0 {
			t.Errorf("%d processes after Ended", left)
		}
		written := out.Len()
		time.Sleep(50 * time.Millisecond)
		if out.Len() != written || written == 0 {
			t.Errorf("%d bytes of output at the end, %d later", written, out.Len())
		}
		if again, err := p.Wait(); err != nil || again != exit {
			t.Errorf("Wait: %+v, %v; want what Ended said, %+v", again, err, exit)
		}
	})
}

// A spare does not keep in use what the host unmounts, nor shows what it has mounted since.
func TestSpareGoesWhenMountsChange(t *testing.T) {
	var gone bool
	runChild(t, child("TestChildMountsChange", "now", unix.CLONE_NEWUSER|unix.CLONE_NEWNS), &gone)
	if !gone {
		t.Error("the spare still waits five seconds after a mount")
	}
}

func TestChildMountsChange(t *testing.T) {
	childArgument(t)
	n := isolating(newBackend(t, "native"))
	spec := testSpec(t, "true")
	spec.UID, spec.GID = os.Geteuid(), os.Getegid()
	s := waitingSpare(t, n, spec)
	time.Sleep(200 * time.Millisecond)
	if !waits(n, s) {
		t.Fatal("control: the spare is gone although nothing happened")
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	for end := time.Now().Add(5 * time.Second); waits(n, s) && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	reportToParent(t, !waits(n, s))
}

// With calls that come at once more than one is kept, and one again when they have stopped.
func TestMoreSparesByUse(t *testing.T) {
	var done bool
	runChild(t, child("TestChildMoreSpares", "now", unix.CLONE_NEWUSER|unix.CLONE_NEWNS), &done)
}

// Where mounts are its own, no other test can have its spares thrown away.
func TestChildMoreSpares(t *testing.T) {
	childArgument(t)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	defer reportToParent(t, true)
	n := isolating(newBackend(t, "native"))
	spec := testSpec(t, "true")
	spec.UID, spec.GID = os.Geteuid(), os.Getegid()
	waitingSpare(t, n, spec)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			p, err := n.Start(t.Context(), spec, Stdio{})
			if err != nil {
				t.Error(err)
				return
			}
			if exit, err := p.Wait(); exit != (Exit{}) || err != nil {
				t.Errorf("a run ended with %+v, %v", exit, err)
			}
		})
	}
	all.Wait()
	n.Prepare(spec)
	waiting := func() int {
		n.reserve.mu.Lock()
		defer n.reserve.mu.Unlock()
		return len(n.reserve.have)
	}
	allWait := func() bool {
		n.reserve.mu.Lock()
		defer n.reserve.mu.Unlock()
		return len(n.reserve.have) > 1 && len(n.reserve.have) == n.reserve.size
	}
	eventually(t, "all spares wait", allWait)
	n.reserve.mu.Lock()
	idle := n.reserve.idle
	n.reserve.mu.Unlock()
	if idle == nil {
		t.Fatal("more spares are kept for ever")
	}
	several := waiting()
	n.reserve.shrink() // the period in which they were all taken
	if got := waiting(); got < several {
		t.Errorf("%d spares wait, of %d that were taken", got, several)
	}
	n.reserve.mu.Lock()
	if n.reserve.idle == nil || n.reserve.idle == idle {
		t.Error("no other period follows, in which fewer could be kept")
	}
	n.reserve.mu.Unlock()
	for _, p := range []Process{startRun(t, n, spec, Stdio{}), startRun(t, n, spec, Stdio{})} {
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	n.reserve.shrink() // one in which two were
	n.Prepare(spec)
	eventually(t, "all spares wait", allWait)
	if got := waiting(); got != 2 {
		t.Errorf("%d spares wait, of which two were taken", got)
	}
	n.reserve.shrink()
	n.reserve.shrink() // one in which none was
	if got := waiting(); got != 1 {
		t.Errorf("%d spares wait, of which none was taken", got)
	}
	failing := spec
	failing.Dir = "/nowhere"
	if _, err := n.Start(t.Context(), failing, Stdio{}); err == nil {
		t.Error("control: a run in a directory that is not there began")
	}
	n.reserve.mu.Lock()
	defer n.reserve.mu.Unlock()
	if n.reserve.going != 0 {
		t.Errorf("%d runs go on, it says, after all have ended", n.reserve.going)
	}
}

// A run that finds no spare while others go on has as many kept as there are runs, and at least one more than there were.
func TestMoreSparesByHowMuch(t *testing.T) {
	for _, test := range []struct{ going, size, want int }{
		{1, 1, 1},
		{2, 1, 2},
		{5, 1, 5},
		{3, 5, 6},
		{100, 1, maxSpares},
		{2, maxSpares, maxSpares},
	} {
		none := func(context.Context, recipe) (*spare, error) { return nil, errors.New("none") }
		r := &reserve{start: none, told: true, going: test.going, size: test.size, fewest: 1}
		r.mu.Lock()
		r.await(t.Context())
		if r.size != test.want {
			t.Errorf("with %d runs and %d spares, %d are kept, want %d", test.going, test.size, r.size, test.want)
		}
		if missing := test.going > 1; (r.fewest == 0) != missing {
			t.Errorf("with %d runs, %d spares are said to have waited all the time", test.going, r.fewest)
		}
		r.mu.Unlock()
		r.close()
	}
}

// A run does not wait for a spare that it could not use, nor beyond its own end.
func TestSpareIsNotAwaitedInVain(t *testing.T) {
	n := isolating(newBackend(t, "native"))
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	n.reserve.start = func(ctx context.Context, _ recipe) (*spare, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil, errors.New("none")
	}
	spec := testSpec(t, "true")
	n.Prepare(spec)
	other := spec
	other.Limits.Files = 50
	began := time.Now()
	if exit, out := doRun(t, n, other, ""); exit != (Exit{}) {
		t.Errorf("a run with another limit: %+v, %q", exit, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	p, err := n.Start(ctx, spec, Stdio{})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(); err != nil || exit != (Exit{Killed: true}) {
		t.Errorf("a run that ends while it waits: %+v, %v", exit, err)
	}
	if took := time.Since(began); took > spareTime/2 {
		t.Errorf("they took %v", took)
	}
}

// What is wanted is worked out in the lull; but the first time at once, for a run that comes before.
func TestRecipeIsAskedForInTheLull(t *testing.T) {
	none := func(context.Context, recipe) (*spare, error) { return nil, errors.New("none") }
	r := &reserve{start: none, filling: true} // a lull is awaited already
	by := func(uid int) func() recipe { return func() recipe { return recipe{uid: uid} } }
	r.want(by(1))
	if !r.told || r.wanted.uid != 1 {
		t.Errorf("told %v, %+v, want the first", r.told, r.wanted)
	}
	r.want(by(2))
	r.want(by(3))
	if r.wanted.uid != 1 {
		t.Errorf("before the lull: %+v, want the first", r.wanted)
	}
	r.filling = false
	r.want(by(4))
	defer r.close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		wanted := r.wanted.uid
		r.mu.Unlock()
		if wanted == 4 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("ten seconds after a lull: %d, want the last", wanted)
		}
	}
}

// A spare that the next run can't take goes when the lull comes, and makes room for another.
func TestSpareOfAnotherRecipeGoes(t *testing.T) {
	n := isolating(newBackend(t, "native"))
	undisturbed(t, func() {
		spec := testSpec(t, "true")
		old := waitingSpare(t, n, spec)
		spec.Limits.Files = 50
		n.Prepare(spec)
		n.reserve.mu.Lock()
		defer n.reserve.mu.Unlock()
		n.reserve.tell() // or the lull has come already
		if slices.Contains(n.reserve.have, old) {
			t.Error("it is kept")
		}
	})
}
