package envs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// killed makes this test binary a server that installs, and is killed meanwhile.
const killed = "TEST_KILLED_SERVER"

// TestKilledServer is the server of TestKill; by itself it does nothing.
func TestKilledServer(t *testing.T) {
	dir, step, _ := strings.Cut(os.Getenv(killed), "|")
	if dir == "" {
		return
	}
	w := newWorld(t)
	w.dir = dir
	w.config.Allow = []string{"six", "needs-six"}
	kill := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	w.installer.Before = func(_ context.Context, now string) error {
		if now == step {
			kill()
		}
		return nil
	}
	if after, err := time.ParseDuration(step); err == nil {
		w.installer.Before = func(_ context.Context, now string) error {
			if now == "install" { // from here on at any moment
				time.AfterFunc(after, kill)
			}
			return nil
		}
	}
	c := w.begin()
	if _, _, err := install(c, "default", "needs-six"); err != nil {
		t.Fatal(err)
	}
	fmt.Println("was not killed")
}

// A server that is killed, at any step or moment, leaves a whole layer or none, and the next installation
// works and leaves nothing behind.
func TestKill(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	moments := []string{"probe", "resolve", "fetch", "install"}
	for i := range 20 {
		moments = append(moments, (time.Duration(i*i) * 100 * time.Microsecond).String())
	}
	ended, layers := 0, 0
	for _, moment := range moments {
		w := newWorld(t)
		w.config.Allow = []string{"six", "needs-six"}
		cmd := exec.Command(self, "-test.run=^TestKilledServer$")
		cmd.Env = append(os.Environ(), killed+"="+w.dir+"|"+moment, "TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err == nil && strings.Contains(string(out), "was not killed") {
			ended++
		} else if !strings.Contains(fmt.Sprint(err), "killed") {
			t.Fatalf("%s: %v: %s", moment, err, out)
		}
		made, err := os.ReadDir(filepath.Join(w.dir, "layers"))
		if err != nil {
			t.Fatal(err)
		}
		layers += len(made)
		c := w.begin() // removes what the dead one left
		w.clean()
		e, err := c.Store().Environment("default")
		if err != nil || len(e.Packages) != 0 && set(e.Packages) != "needs-six 1.0, six 1.17.0" {
			t.Errorf("%s: the environment holds %q, %v", moment, set(e.Packages), err)
		}
		if _, _, err := install(c, "default", "needs-six"); err != nil {
			t.Errorf("%s: the next installation: %v", moment, err)
		}
		if got := w.sees(c, "default", "needs_six"); got != "1.0" {
			t.Errorf("%s: runs see %s", moment, got)
		}
		w.clean()
	}
	t.Logf("%d of %d servers had ended before they were to be killed, %d layers were there after the kill", ended, len(moments), layers)
	if ended == len(moments) {
		t.Error("no server was killed")
	}
}
