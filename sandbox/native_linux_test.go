package sandbox

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Runs of tests are begun ahead as an ordinary user, and not as root, so that both are tested.
var prepared = flag.Bool("prepared", os.Geteuid() != 0, "begin each run's sandbox ahead, where the backend can")

// backendNames are the backends that isolate, which every test of what a run may do is played on.
var backendNames = []string{"native", "bwrap"}

// onEach plays a test on each backend that isolates.
func onEach(t *testing.T, test func(*testing.T, Backend)) {
	for _, name := range backendNames {
		t.Run(name, func(t *testing.T) { test(t, newBackend(t, name)) })
	}
}

// newBackend prepares a backend; the test is skipped if what it needs is not installed.
func newBackend(t testing.TB, name string) Backend {
	t.Helper()
	b, err := openBackend(name)
	if err != nil {
		if t, ok := t.(*testing.T); ok && errors.Is(err, fs.ErrNotExist) {
			lacks(t, name, err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	if *prepared {
		return ahead{b}
	}
	return b
}

// ahead begins the sandbox of each run ahead.
type ahead struct{ Backend }

func (a ahead) Start(ctx context.Context, spec Spec, stdio Stdio) (Process, error) {
	if spec.validate() == nil {
		isolating(a).Prepare(spec)
	}
	return a.Backend.Start(ctx, spec, stdio)
}

func openBackend(name string) (Backend, error) {
	if name == "bwrap" {
		b, err := NewBubblewrap()
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	b, err := NewNative()
	if err != nil {
		return nil, err
	}
	return b, nil
}

func newNative(t testing.TB) Backend { return newBackend(t, "native") }

// isolating is what the backends have in common.
func isolating(b Backend) *Native {
	switch b := b.(type) {
	case ahead:
		return isolating(b.Backend)
	case *Bubblewrap:
		return b.isolating
	}
	return b.(*Native)
}

// testSpec describes a run that sees the host's system, and the test's own binary at /probe.
func testSpec(t testing.TB, argv ...string) Spec {
	t.Helper()
	system, err := HostSystem(os.Environ(), os.Geteuid(), os.Getegid())
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{
		ID:      "test",
		Argv:    argv,
		Env:     []string{"PATH=" + strings.Join(system.Path, ":"), "HOME=/home/run"},
		Dir:     "/tmp",
		Home:    "/home/run",
		UID:     os.Geteuid(),
		GID:     os.Getegid(),
		Mounts:  append(system.Mounts, Mount{Kind: MountBind, Source: exe, Target: "/probe"}),
		Network: NetworkNone,
	}
}

// onOverlay gives the spec a workspace dir as its working directory, and returns the writable layer.
func onOverlay(t testing.TB, spec *Spec, dir string) (upper string) {
	t.Helper()
	layer, err := os.MkdirTemp("", "airlock-layer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeLayer(layer) })
	layer, _, err = FollowLinks(layer)
	if err != nil {
		t.Fatal(err)
	}
	real, links, err := FollowLinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	upper, work := filepath.Join(layer, "upper"), filepath.Join(layer, "work")
	for _, d := range []string{upper, work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	spec.Mounts = append(append(spec.Mounts, links...), Mount{Kind: MountOverlay, Source: real, Target: real, Upper: upper, Work: work})
	spec.Dir = dir
	return upper
}

// startRun starts a run, or skips the test where the host can't build a sandbox.
func startRun(t testing.TB, n Backend, spec Spec, stdio Stdio) Process {
	t.Helper()
	p, err := n.Start(t.Context(), spec, stdio)
	if e := new(SetupError); errors.As(err, &e) && e.Op == "create namespaces" {
		if t, ok := t.(*testing.T); ok {
			lacks(t, "userns", err)
		}
	} else if errors.As(err, &e) && e.Op == "mount overlay on" {
		if t, ok := t.(*testing.T); ok {
			lacks(t, "overlay", err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// doRun runs to the end and returns what came out.
func doRun(t testing.TB, n Backend, spec Spec, stdin string) (Exit, string) {
	t.Helper()
	var out bytes.Buffer
	stdio := Stdio{Output: &out}
	if stdin != "" {
		stdio.Stdin = strings.NewReader(stdin)
	}
	exit, err := startRun(t, n, spec, stdio).Wait()
	if err != nil {
		t.Fatalf("%v (output %q)", err, &out)
	}
	return exit, out.String()
}

// shell runs a script that is to end well, and returns what it wrote.
func shell(t testing.TB, n Backend, script string, edits ...func(*Spec)) string {
	t.Helper()
	spec := testSpec(t, "sh", "-c", script)
	for _, edit := range edits {
		edit(&spec)
	}
	exit, out := doRun(t, n, spec, "")
	if exit.Unrouted = false; exit != (Exit{}) { // many try the network
		t.Fatalf("%+v, output:\n%s", exit, out)
	}
	return out
}
