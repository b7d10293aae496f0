package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// chosen is a Choice as a child reports it.
type chosen struct {
	Name, Why string
	Refused   map[string]string // by name, the cause
	Hints     map[string]string
}

func report(c Choice) chosen {
	r := chosen{c.Name, c.Why, map[string]string{}, map[string]string{}}
	for _, one := range c.Refused {
		r.Refused[one.Name] = one.Cause()
		if e := new(SetupError); errors.As(one.Err, &e) {
			r.Hints[one.Name] = e.Hint
		}
	}
	return r
}

// patience is how long a slow machine may take to try one backend.
const patience = time.Minute

// memoryCondition is made for a PID namespace and those below it.
const memoryCondition = "no executable memory files"

// The conditions are made for real, in user and mount namespaces of the child's own or by a seccomp filter that
// returns what a container runtime's does.
func TestChoose(t *testing.T) {
	newBackend(t, "bwrap")
	const seccomp = "a seccomp filter on this process"
	for _, tt := range []struct {
		condition, name, why string
		cause                string // of both backends, if name is ""
		mend                 string
	}{
		{"none", "native", "a sandbox was built with it", "", ""},
		{"no more user namespaces", "", "", "user.max_user_namespaces is 0", "sudo sysctl user.max_user_namespaces=15000"},
		{"covered proc", "", "", "parts of the host's /proc are covered", "systempaths=unconfined"},
		{"filter of namespaces", "", "", seccomp, "seccomp=unconfined"},
		{"filter of mounts", "", "", seccomp, "seccomp=unconfined"},
		{"no mount interface", "", "", "Linux 5.12", "seccomp"},
		{memoryCondition, "", "", "vm.memfd_noexec is 2", "sudo sysctl vm.memfd_noexec=1"},
		{"no overlay", "native", "but without an overlay", "", ""},
	} {
		t.Run(tt.condition, func(t *testing.T) {
			if tt.condition == memoryCondition && os.Geteuid() != 0 {
				return // only root can make it
			}
			var got chosen
			flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS)
			if tt.condition == memoryCondition {
				flags |= unix.CLONE_NEWPID // whose setting it is
			}
			runChild(t, child("TestChildChoose", tt.condition, flags), &got)
			t.Logf("%+v", got)
			if got.Name != tt.name || !strings.Contains(got.Why, tt.why) {
				t.Fatalf("chosen is %q (%s), want %q (%s)", got.Name, got.Why, tt.name, tt.why)
			}
			if tt.name != "" {
				return
			}
			for _, name := range backendNames {
				if !strings.Contains(got.Refused[name], tt.cause) || !strings.Contains(got.Hints[name], tt.mend) {
					t.Errorf("%s is refused for %q (hint %q), want %q, %q", name, got.Refused[name], got.Hints[name], tt.cause, tt.mend)
				}
			}
		})
	}
}

func TestChildChoose(t *testing.T) {
	condition := childArgument(t)
	// The rights that make the condition are not an ordinary user's, and bubblewrap refuses to start with them. They
	// are the thread's, and those of a program that it executes: a condition under which bubblewrap is tried does that.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	inCondition(t, condition)
	reportToParent(t, report(Choose(t.Context(), patience)))
}

// madeBefore comes before the name of a condition that this process was executed in.
const madeBefore = "made: "

// inCondition makes the condition, unless this process was executed by makeCondition.
func inCondition(t *testing.T, which string) {
	t.Helper()
	if strings.HasPrefix(which, madeBefore) {
		return
	}
	if err := makeCondition(t, which); err != nil {
		t.Fatal(err)
	}
}

// makeCondition makes this process one on a host that is set up like that.
func makeCondition(t *testing.T, which string) error {
	refusals := map[string][]rule{
		"filter of namespaces": {
			{"clone", unix.SYS_CLONE, 220, unix.EPERM, []condition{anyBit(0, unix.CLONE_NEWUSER)}},
			{"unshare", unix.SYS_UNSHARE, 97, unix.EPERM, []condition{anyBit(0, unix.CLONE_NEWUSER)}},
			{"clone3", unix.SYS_CLONE3, unix.SYS_CLONE3, unix.ENOSYS, nil},
		},
		"filter of mounts":   {{"fsopen", unix.SYS_FSOPEN, unix.SYS_FSOPEN, unix.EPERM, nil}},
		"no mount interface": {{"fsopen", unix.SYS_FSOPEN, unix.SYS_FSOPEN, unix.ENOSYS, nil}},
		"no nf_tables": {{
			"socket", unix.SYS_SOCKET, 198, unix.EPROTONOSUPPORT,
			[]condition{argIn(0, unix.AF_NETLINK), argIn(2, unix.NETLINK_NETFILTER)},
		}},
		"nf_tables refused": {{
			"socket", unix.SYS_SOCKET, 198, unix.EPERM,
			[]condition{argIn(0, unix.AF_NETLINK), argIn(2, unix.NETLINK_NETFILTER)},
		}},
	}
	switch which {
	case "none":
		return nil
	case "no more user namespaces":
		return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	case memoryCondition:
		return os.WriteFile("/proc/sys/vm/memfd_noexec", []byte("2"), 0)
	case "covered proc":
		if err := unix.Mount("none", "/proc/fs", "tmpfs", 0, ""); err != nil {
			return err
		}
		return executeAgain(which)
	case "no overlay":
		// The directory for temporary files lies on an overlay, which can't be an overlay's layer.
		dir := t.TempDir()
		for _, name := range []string{"lower", "upper", "work", "merged"} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				return err
			}
		}
		merged := filepath.Join(dir, "merged")
		t.Cleanup(func() { unix.Unmount(merged, unix.MNT_DETACH); removeLayer(dir) })
		t.Setenv("TMPDIR", merged)
		return unix.Mount("overlay", merged, "overlay", 0, "userxattr,lowerdir="+dir+"/lower,upperdir="+dir+"/upper,workdir="+dir+"/work")
	}
	// A filter holds for the thread that installs it, and for all of a program that this one executes.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, err := installFilter(refusals[which], 0); err != nil {
		return err
	}
	return executeAgain(which)
}

// executeAgain executes this child once more, which finds itself in the condition. It returns only if it can't.
func executeAgain(which string) error {
	if _, err := unix.FcntlInt(childReport, unix.F_SETFD, 0); err != nil {
		return err
	}
	env := []string{asChild + "=" + madeBefore + which, "TMPDIR=" + os.TempDir(), "PATH=/usr/bin:/bin"}
	return unix.Exec("/proc/self/exe", os.Args, env)
}

// fakeBackend answers a try as it is told to.
type fakeBackend struct {
	Backend
	probe, plain func(context.Context) error
}

func (f fakeBackend) Probe(ctx context.Context) error               { return f.probe(ctx) }
func (f fakeBackend) probeWithoutOverlay(ctx context.Context) error { return f.plain(ctx) }
func (f fakeBackend) Close() error                                  { return nil }

func TestChooseInOrder(t *testing.T) {
	works := func(context.Context) error { return nil }
	fails := func(context.Context) error { return &SetupError{Op: "x", Err: unix.EPERM, Hint: "cause; mend\nmore"} }
	overlay := func(context.Context) error { return &SetupError{Op: OpMountOverlay, Err: unix.EINVAL} }
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return &SetupError{Op: "x", Err: context.Cause(ctx)}
	}
	type probes struct{ probe, plain func(context.Context) error }
	for _, tt := range []struct {
		name    string
		a, b    probes
		want    string
		refused string
	}{
		{"the first works", probes{works, works}, probes{works, works}, "a", ""},
		{"the second works", probes{fails, fails}, probes{works, works}, "b", "a: cause; mend"},
		{"the first hangs", probes{hangs, hangs}, probes{works, works}, "b", "a: sandbox: x: context deadline exceeded"},
		{"no overlay", probes{overlay, works}, probes{works, works}, "a", ""},
		{"no overlay and nothing else", probes{overlay, fails}, probes{works, works}, "b", "a: cause; mend"},
		{"none", probes{fails, fails}, probes{overlay, fails}, "", "a: cause; mend, b: cause; mend"},
		{"none but one that was not tried to the end", probes{hangs, hangs}, probes{fails, fails}, "a", "a: sandbox: x: context deadline exceeded, b: cause; mend"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			open := func(p probes) func() (probed, error) {
				return func() (probed, error) { return fakeBackend{probe: p.probe, plain: p.plain}, nil }
			}
			c, b := choose(t.Context(), []candidate{{"a", open(tt.a)}, {"b", open(tt.b)}}, 20*time.Millisecond)
			if proved := c.Name != "" && !strings.Contains(c.Why, "was it not tried"); (b != nil) != proved {
				t.Errorf("%q was chosen, and %v is open", c.Why, b)
			}
			var refused []string
			for _, r := range c.Refused {
				refused = append(refused, r.Name+": "+r.Cause())
			}
			if got := strings.Join(refused, ", "); c.Name != tt.want || got != tt.refused {
				t.Errorf("got %q, refused %q; want %q, %q", c.Name, got, tt.want, tt.refused)
			}
			if (c.Err() == nil) != (tt.want != "") || (c.Why == "") != (tt.want == "") {
				t.Errorf("chosen %q for %q, error %v", c.Name, c.Why, c.Err())
			}
		})
	}
}

// A host where only bubblewrap may make user namespaces has auto take it.
func TestChooseBubblewrap(t *testing.T) {
	newBackend(t, "bwrap")
	refused := candidate{"native", func() (probed, error) { return nil, cloneError(unix.EACCES, func() bool { return false }) }}
	c, b := choose(t.Context(), []candidate{refused, candidates[1]}, patience)
	if b == nil {
		t.Fatalf("got %+v", c)
	}
	defer b.Close()
	if c.Name != "bwrap" || len(c.Refused) != 1 {
		t.Errorf("got %+v", c)
	}
}

// A try that takes too long is ended, with all that it started.
func TestChooseEndsWhatItTried(t *testing.T) {
	m := mark(t)
	hanging := candidate{"bwrap", func() (probed, error) { return insteadOfBubblewrap(t, "sh -c ': "+m+"; sleep 600'"), nil }}
	began := time.Now()
	c, b := choose(t.Context(), []candidate{hanging}, 300*time.Millisecond)
	if b != nil {
		t.Error("what hangs is open")
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("it took %v", d)
	}
	if c.Name != "bwrap" || len(c.Refused) != 1 || !errors.Is(c.Refused[0].Err, context.DeadlineExceeded) {
		t.Errorf("got %+v", c)
	}
	if left := processesWith(t, m); left > 0 {
		t.Errorf("%d processes are left", left)
	}
}
