package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"airlock/sandbox"
)

// The test binary is the program too, as the command airlock of the scripts. As egress-client it is a Go program that a
// run executes.
func TestMain(m *testing.M) { testscript.Main(m, testPrograms) }

var testPrograms = map[string]func(){"airlock": main, "egress-client": egressClient}

// require turns the skip of what this host can't do into a failure: -require=userns.
var require = flag.String("require", "", "comma-separated list of what must not be skipped: userns, bwrap, programs, egress")

// sandboxHere tries to build a sandbox.
var sandboxHere = sync.OnceValue(func() error {
	native, err := sandbox.NewNative()
	if err != nil {
		return err
	}
	return errors.Join(native.Probe(context.Background()), native.Close())
})

// bubblewrapHere tries to build one with bubblewrap.
var bubblewrapHere = sync.OnceValue(func() error { return sandbox.Choose(context.Background(), probeTime, "bwrap").Err() })

// TestScript plays testdata/script: the command line as a person meets it, with exit statuses, standard
// output and standard error.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(home, ".state"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(home, ".cache"))
			env.Setenv("WS", filepath.Join(env.WorkDir, "ws"))
			env.Setenv("TEST_INIT_OF_AIRLOCK", os.Getenv("TEST_INIT_OF_AIRLOCK"))
			for _, dir := range []string{home, filepath.Join(env.WorkDir, "ws")} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return err
				}
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			lacked := map[string]string{"sandbox": "userns", "bwrap": "bwrap"}[name]
			if lacked == "" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			err := sandboxHere()
			if name == "bwrap" {
				err = bubblewrapHere()
			}
			if err != nil && strings.Contains(","+*require+",", ","+lacked+",") {
				return false, fmt.Errorf("-require=%s: %w", lacked, err)
			}
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}

// status runs airlock and asserts its exit status: status 2 ARGS...
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: status CODE ARGS...")
	}
	err := ts.Exec("airlock", args[1:]...)
	got := "0"
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("airlock: %v", err)
		}
		got = strconv.Itoa(exit.ExitCode())
	}
	if got != args[0] {
		ts.Fatalf("airlock %v: exit status %s, want %s", args[1:], got, args[0])
	}
}
