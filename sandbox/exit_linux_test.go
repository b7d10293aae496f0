package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExit(t *testing.T) { onEach(t, testExit) }

func testExit(t *testing.T, n Backend) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("not a program"), 0o644); err != nil {
		t.Fatal(err)
	}
	const notFound = "no such file or directory"
	for _, test := range []struct {
		name string
		argv []string
		want Exit
	}{
		{"success", []string{"true"}, Exit{}},
		{"failure", []string{"sh", "-c", "exit 7"}, Exit{Code: 7}},
		{"status like a signal's", []string{"sh", "-c", "exit 137"}, Exit{Code: 137}},
		{"signal", []string{"sh", "-c", "kill -9 $$"}, Exit{Signal: "SIGKILL"}},
		{"another signal", []string{"sh", "-c", "kill -SEGV $$"}, Exit{Signal: "SIGSEGV"}},
		{"real-time signal", []string{"sh", "-c", "kill -40 $$"}, Exit{Signal: "signal 40"}},
		{"a name that is nowhere", []string{"no-such-command"}, Exit{Code: 127, StartError: notFound}},
		{"a path that is nowhere", []string{"/no/such/command"}, Exit{Code: 127, StartError: notFound}},
		{"no interpreter", []string{script}, Exit{Code: 127, StartError: notFound}},
		{"not executable", []string{plain}, Exit{Code: 126, StartError: "permission denied"}},
		{"a directory", []string{"/usr"}, Exit{Code: 126, StartError: "permission denied"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := testSpec(t, test.argv...)
			for _, f := range []string{script, plain} {
				spec.Mounts = append(spec.Mounts, Mount{Kind: MountBind, Source: f, Target: f})
			}
			if got, out := doRun(t, n, spec, ""); got != test.want {
				t.Errorf("got %+v, want %+v; output %q", got, test.want, out)
			}
		})
	}
}

// The order of the two streams is that of the writes, since they are one pipe.
func TestOutputOrder(t *testing.T) { onEach(t, testOutputOrder) }

func testOutputOrder(t *testing.T, n Backend) {
	out := shell(t, n, "for i in 1 2 3; do echo out $i; echo err $i >&2; done")
	if want := "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestEnvironmentIsExact(t *testing.T) { onEach(t, testEnvironmentIsExact) }

func testEnvironmentIsExact(t *testing.T, n Backend) {
	t.Setenv("AIRLOCK_TEST_SECRET", "x") // the server has it
	spec := testSpec(t, "/usr/bin/env")
	spec.Env = []string{"A=1", "B=two\nlines", "C=\xff"}
	if _, out := doRun(t, n, spec, ""); out != "A=1\nB=two\nlines\nC=\xff\n" {
		t.Errorf("got %q", out)
	}
}

func TestArgumentsAreBytes(t *testing.T) { onEach(t, testArgumentsAreBytes) }

func testArgumentsAreBytes(t *testing.T, n Backend) {
	spec := testSpec(t, "printf", "%s|", "a b", "", "\xff\\x41", "é\n", "-n")
	if _, out := doRun(t, n, spec, ""); out != "a b||\xff\\x41|é\n|-n|" {
		t.Errorf("got %q", out)
	}
}

func TestStdin(t *testing.T) { onEach(t, testStdin) }

func testStdin(t *testing.T, n Backend) {
	for _, test := range []struct{ name, script, stdin, want string }{
		{"none is empty", "cat; echo end", "", "end\n"},
		{"given", "cat; echo end", "given\n", "given\nend\n"},
		{"more than a pipe holds", "wc -c", strings.Repeat("x", 1<<20), "1048576\n"},
		{"not read", "echo end", strings.Repeat("x", 1<<20), "end\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if exit, out := doRun(t, n, testSpec(t, "sh", "-c", test.script), test.stdin); out != test.want || exit != (Exit{}) {
				t.Errorf("got %q (%+v), want %q", out, exit, test.want)
			}
		})
	}
}

func TestMissingDirectoryIsASetupError(t *testing.T) { onEach(t, testMissingDirectoryIsASetupError) }

func testMissingDirectoryIsASetupError(t *testing.T, n Backend) {
	spec := testSpec(t, "true")
	spec.Dir = "/tmp/missing"
	_, err := n.Start(t.Context(), spec, Stdio{})
	if e := new(SetupError); !errors.As(err, &e) || e.Path != "/tmp/missing" || !errors.Is(err, unix.ENOENT) {
		t.Errorf("got %v", err)
	}
}

func TestMissingSource(t *testing.T) { onEach(t, testMissingSource) }

func testMissingSource(t *testing.T, n Backend) {
	missing := func(s *Spec) {
		s.Mounts = append(s.Mounts, Mount{Kind: MountBind, Source: "/no/such", Target: "/here", Optional: true})
	}
	if out := shell(t, n, "ls /here 2>&1 || true", missing); !strings.Contains(out, "No such file") {
		t.Errorf("an optional mount without a source left %q", out)
	}
	spec := testSpec(t, "true")
	missing(&spec)
	spec.Mounts[len(spec.Mounts)-1].Optional = false
	_, err := n.Start(t.Context(), spec, Stdio{})
	if e := new(SetupError); !errors.As(err, &e) || e.Path != "/no/such" || !errors.Is(err, unix.ENOENT) {
		t.Errorf("got %v", err)
	}
}

func TestHostname(t *testing.T) { onEach(t, testHostname) }

func testHostname(t *testing.T, n Backend) {
	if out := shell(t, n, "cat /proc/sys/kernel/hostname /etc/hostname"); out != "airlock\nairlock\n" {
		t.Errorf("got %q", out)
	}
}

func TestProbe(t *testing.T) { onEach(t, testProbe) }

func testProbe(t *testing.T, n Backend) {
	err := n.Probe(t.Context())
	if e := new(SetupError); errors.As(err, &e) && e.Op == "create namespaces" {
		lacks(t, "userns", err)
	}
	if err != nil {
		t.Error(err)
	}
}
