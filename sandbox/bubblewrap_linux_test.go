package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestBubblewrapArgs(t *testing.T) {
	want := strings.Fields(`--unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts
		--uid 1000 --gid 100 --cap-add ALL --as-pid-1 --dev-bind / / --chdir /`)
	if diff := cmp.Diff(want, bubblewrapArgs(Spec{UID: 1000, GID: 100})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFindBubblewrap(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"data": 0o644, "program": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	missing, data, program := dir+"/missing", dir+"/data", dir+"/program"
	if got, err := findBubblewrap([]string{missing, dir, data, program}); got != program || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	_, err := findBubblewrap([]string{missing, dir, data})
	if e := new(SetupError); !errors.As(err, &e) || e.Hint == "" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// insteadOfBubblewrap is a backend whose bubblewrap is a script.
func insteadOfBubblewrap(t *testing.T, script string) *Bubblewrap {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := newBubblewrap(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// What bubblewrap can do other than what it is for ends in a refusal that says so, and leaves nothing.
func TestBubblewrapThatFails(t *testing.T) {
	real := isolating(newBackend(t, "bwrap")).maker.(bubblewrap).path
	for _, tt := range []struct {
		name, script, err, hint string
	}{
		{"control: the real one", `exec ` + real + ` "$@"`, "", ""},
		{"takes the rights", `shift 2; exec ` + real + ` --args 7 --cap-drop ALL "$@"`, "gave init no rights over its namespaces: operation not permitted", "AppArmor"},
		{"refuses", `echo "bwrap: no  luck" >&2; exit 3`, "did not start init (exit status 3): bwrap: no luck", "--unshare-user"},
		{"says nothing", `exit 0`, "did not start init (exit status 0): it said nothing", "--unshare-user"},
		{"is too old", `echo "bwrap: Unknown option --args" >&2; exit 1`, "Unknown option --args", ""},
		{"makes no namespaces", `cat <&7 >/dev/null; exec /proc/self/fd/8 airlock-init`, "not the first process of a PID namespace", ""},
		{"is another program", `exec true`, "it said nothing", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := insteadOfBubblewrap(t, tt.script)
			p, err := b.Start(t.Context(), testSpec(t, "true"), Stdio{})
			if tt.err == "" {
				if err != nil {
					t.Fatal(err)
				}
				if exit, err := p.Wait(); exit != (Exit{}) || err != nil {
					t.Errorf("got %+v, %v", exit, err)
				}
				return
			}
			e := new(SetupError)
			if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.err) || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("got %v (hint %q)", err, e.Hint)
			}
		})
	}
}

func TestSetuidBubblewrap(t *testing.T) {
	uid := os.Geteuid()
	if uid == 0 {
		uid = 54321
	}
	for _, path := range []string{"/usr/bin/passwd", "/usr/bin/su", "/usr/bin/mount"} {
		if info, err := os.Stat(path); err != nil || info.Mode()&fs.ModeSetuid == 0 {
			continue
		}
		err := bubblewrap{path}.mustGiveRights(Spec{UID: uid})
		if e := new(SetupError); !errors.As(err, &e) || !strings.Contains(err.Error(), "setuid") || !strings.Contains(e.Hint, "chmod u-s "+path) {
			t.Errorf("got %v", err)
		}
		if err := (bubblewrap{path}).mustGiveRights(Spec{UID: 0}); err != nil {
			t.Errorf("control: of root: %v", err)
		}
		return
	}
	t.Error("this host has no setuid program to take for bubblewrap")
}

// A bubblewrap that never comes to execute init is ended with the run, with all that it started.
func TestBubblewrapThatHangs(t *testing.T) {
	m := mark(t)
	b := insteadOfBubblewrap(t, "sh -c ': "+m+"; sleep 600'")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	p, err := b.Start(ctx, testSpec(t, "true"), Stdio{})
	if err == nil {
		var exit Exit
		if exit, err = p.Wait(); err != nil || exit != (Exit{Killed: true}) {
			t.Errorf("got %+v, %v", exit, err)
		}
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("it took %v", d)
	}
	eventually(t, "no process of it is left", func() bool { return processesWith(t, m) == 0 })
}

// A server that dies before it has sent the arguments leaves a bwrap that does nothing.
func TestBubblewrapWithoutArguments(t *testing.T) {
	b := isolating(newBackend(t, "bwrap"))
	spec := testSpec(t, "true")
	pipes, err := newPipes()
	if err != nil {
		t.Fatal(err)
	}
	init, err := b.maker.start(b.exe, spec, pipes)
	pipes.closeChild()
	if err != nil {
		t.Fatal(err)
	}
	pipes.closeServer()
	if status, err := init.wait(); status != "exit status 1" || err != nil {
		t.Errorf("it ended with %q, %v", status, err)
	}
}

// The run is held by what init sent, not by the bwrap process, which others may kill.
func TestKilledBubblewrap(t *testing.T) {
	b := newBackend(t, "bwrap")
	for _, tt := range []struct {
		name, script string
		cancel       bool
		want         Exit
	}{
		{"the run goes on", "echo ready; sleep 0.3; exit 7", false, Exit{Code: 7}},
		{"the run can be killed", "echo ready; sleep 600", true, Exit{Killed: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := mark(t)
			w := &firstWrite{once: make(chan struct{})}
			p, err := b.Start(ctx, testSpec(t, "sh", "-c", tt.script, m), Stdio{Output: w})
			if err != nil {
				t.Fatal(err)
			}
			<-w.once
			if err := unix.Kill(p.(*process).init.(*wrappedInit).bwrap.Pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if tt.cancel {
				cancel()
			}
			exit, err := p.Wait()
			if err != nil || exit != tt.want {
				t.Errorf("got %+v, %v; want %+v", exit, err, tt.want)
			}
			if left := processesWith(t, m); left > 0 {
				t.Errorf("%d processes are left", left)
			}
		})
	}
}

// What bubblewrap's process has of the run is nothing by which it could keep the run's pipes open.
func TestBubblewrapHoldsNothing(t *testing.T) {
	var out bytes.Buffer
	p := startRun(t, newBackend(t, "bwrap"), testSpec(t, "sh", "-c", "read x; echo got $x"), Stdio{Stdin: strings.NewReader("line\n"), Output: &out})
	bwrap := p.(*process).init.(*wrappedInit).bwrap.Pid
	eventually(t, "bwrap has 0, 1, 2 and descriptors of its own alone", func() bool {
		entries, err := os.ReadDir("/proc/" + itoa(bwrap) + "/fd")
		for _, e := range entries {
			to, _ := os.Readlink("/proc/" + itoa(bwrap) + "/fd/" + e.Name())
			if strings.HasPrefix(to, "socket:") || strings.HasPrefix(to, "pipe:") {
				return false
			}
		}
		return err != nil || len(entries) > 0
	})
	if exit, err := p.Wait(); exit != (Exit{}) || err != nil || out.String() != "got line\n" {
		t.Errorf("got %+v, %v, %q", exit, err, &out)
	}
}
