//go:build unix

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func directSpec(dir string, argv ...string) Spec {
	return Spec{ID: "direct", Argv: argv, Env: []string{"PATH=/usr/bin:/bin"}, Dir: dir}
}

func TestDirect(t *testing.T) {
	t.Setenv("AIRLOCK_TEST_SECRET", "x")
	for _, test := range []struct {
		name, stdin string
		argv        []string
		want        Exit
		output      string
	}{
		{"success", "", []string{"sh", "-c", "pwd; echo err >&2; echo out"}, Exit{}, "DIR\nerr\nout\n"},
		{"failure", "", []string{"sh", "-c", "exit 7"}, Exit{Code: 7}, ""},
		{"signal", "", []string{"sh", "-c", "kill -SEGV $$"}, Exit{Signal: "SIGSEGV"}, ""},
		{"stdin", "given", []string{"cat"}, Exit{}, "given"},
		{"no stdin", "", []string{"cat"}, Exit{}, ""},
		{"environment", "", []string{"env"}, Exit{}, "PATH=/usr/bin:/bin\n"},
		{"not found", "", []string{"no-such-command"}, Exit{Code: 127, StartError: "no such file or directory"}, ""},
		{"not executable", "", []string{"/etc/passwd"}, Exit{Code: 126, StartError: "permission denied"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := realTempDir(t)
			var out bytes.Buffer
			stdio := Stdio{Output: &out}
			if test.stdin != "" {
				stdio.Stdin = strings.NewReader(test.stdin)
			}
			p, err := Direct{}.Start(t.Context(), directSpec(dir, test.argv...), stdio)
			if err != nil {
				t.Fatal(err)
			}
			exit, err := p.Wait()
			if want := strings.ReplaceAll(test.output, "DIR", dir); err != nil || exit != test.want || out.String() != want {
				t.Errorf("got %+v, %q, %v; want %+v, %q", exit, &out, err, test.want, want)
			}
		})
	}
}

func TestDirectIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &firstWrite{once: make(chan struct{})}
	p, err := Direct{}.Start(ctx, directSpec("/", "sh", "-c", "trap '' TERM; sleep 600 & echo ready; wait; sleep 600"), Stdio{Output: w})
	if err != nil {
		t.Fatal(err)
	}
	<-w.once
	began := time.Now()
	cancel()
	exit, err := p.Wait()
	if err != nil || exit != (Exit{Killed: true}) || time.Since(began) > 2*time.Second {
		t.Errorf("got %+v, %v after %v", exit, err, time.Since(began))
	}
}

// A process that holds the output does not hold the call.
func TestDirectDoesNotWaitForTheOutput(t *testing.T) {
	began := time.Now()
	var out bytes.Buffer
	p, err := Direct{}.Start(t.Context(), directSpec("/", "sh", "-c", "sleep 20 & echo hi"), Stdio{Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(); err != nil || exit != (Exit{}) || out.String() != "hi\n" || time.Since(began) > 5*time.Second {
		t.Errorf("got %+v, %v, %q after %v", exit, err, &out, time.Since(began))
	}
}

func TestDirectSaysWhatItIs(t *testing.T) {
	if !(Direct{}).Unconfined() {
		t.Error("it claims to confine")
	}
	for limit, by := range (Direct{}).Held() {
		if by != "" {
			t.Errorf("%s is held by %q", limit, by)
		}
	}
	spec := directSpec("/", "true")
	spec.Limits.Strict = true
	if _, err := (Direct{}).Start(t.Context(), spec, Stdio{}); !errors.As(err, new(*SetupError)) {
		t.Errorf("strict limits: %v", err)
	}
	if os.Getenv("PATH") == "" {
		t.Error("control: the server has an environment")
	}
}
