package tools

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"airlock/internal/units"
)

func TestClientGone(t *testing.T) {
	for _, noticed := range []string{"by poll", "by a write"} {
		t.Run(noticed, func(t *testing.T) {
			if noticed == "by poll" && runtime.GOOS != "linux" {
				t.Skip("only Linux polls")
			}
			f := newFakeRunner()
			c := connect(t, New(testOptions(f)))
			c.send(shell("1", "block"))
			<-f.busy
			begin := time.Now()
			c.out.Close()
			if noticed == "by a write" {
				_, _ = io.WriteString(c.in, ping("2")+"\n")
			}
			select {
			case err := <-c.served:
				if !errors.Is(err, ErrClientGone) {
					t.Errorf("Serve returned %v, want ErrClientGone", err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("Serve does not return")
			}
			if d := time.Since(begin); d > 3*time.Second {
				t.Errorf("it took %s", d)
			}
			if _, ended := f.seen(); len(ended) != 1 || f.closed != 1 {
				t.Errorf("ended %q, closed %d times", ended, f.closed)
			}
		})
	}
}

func TestContextEnds(t *testing.T) {
	why := errors.New("SIGTERM")
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	c.send(shell("1", "block") + "\n" + shell("2", "echo waits"))
	<-f.busy
	c.cancel(why)
	lines, err := c.remaining()
	if !errors.Is(err, why) {
		t.Errorf("Serve returned %v", err)
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "exit=cancelled") || !strings.Contains(lines[1], "exit=cancelled") {
		t.Errorf("answers are %q", lines)
	}
	if started, _ := f.seen(); !slices.Equal(started, []string{"block"}) {
		t.Errorf("ran %q", started)
	}
}

func TestInputEnds(t *testing.T) {
	f := newFakeRunner()
	o := testOptions(f)
	o.Policy.Limits.Wait = units.Duration(200 * time.Millisecond)
	c := connect(t, New(o))
	c.send(shell("1", "echo quick") + "\n" + shell("2", "block"))
	<-f.busy
	c.in.Close()
	lines, err := c.remaining()
	if err != nil {
		t.Errorf("Serve returned %v", err)
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "quick") || !strings.Contains(lines[1], "exit=cancelled") {
		t.Errorf("answers are %q", lines)
	}
}

func TestRunThatDoesNotEnd(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	c.send(shell("1", "stubborn"))
	<-f.busy
	begin := time.Now()
	c.cancel(context.Canceled)
	select {
	case err := <-c.served:
		if err == nil || !strings.Contains(err.Error(), "have not ended") {
			t.Errorf("Serve returned %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Serve does not return")
	}
	if d := time.Since(begin); d > 3500*time.Millisecond {
		t.Errorf("it took %s", d)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	converse := func() {
		c := connect(t, New(testOptions(newFakeRunner())))
		c.send(shell("1", "echo x") + "\n" + ping("2"))
		if _, err := c.rest(); err != nil {
			t.Fatal(err)
		}
	}
	converse()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 50 {
		converse()
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > goroutines+5 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines+5 {
		t.Errorf("%d goroutines, were %d", n, goroutines)
	}
	// The two ends that the client of a test holds are closed by its clean-up, at the end.
	if n := openFiles(t); n > files+50*2+5 {
		t.Errorf("%d open files, were %d", n, files)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc/self/fd")
	}
	return len(entries)
}
