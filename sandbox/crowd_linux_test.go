package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// threads makes 1,500 threads, says so, and lives until its input ends.
func threads([]string) {
	var made sync.WaitGroup
	for range 1500 {
		made.Add(1)
		go func() {
			runtime.LockOSThread()
			made.Done()
			_ = unix.Pause()
		}()
	}
	made.Wait()
	fmt.Println("made")
	_, _ = os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}

// What the user runs on the host doesn't count for a run: not to its limit, and its limit not to the host.
func TestRunOnACrowdedHost(t *testing.T) {
	n := newNative(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	crowd := exec.Command(exe, "threads")
	input, err := crowd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := crowd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := crowd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close()
		_ = crowd.Wait()
	})
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "made\n" {
		t.Fatalf("no crowd: %q, %v", line, err)
	}

	const limit = 100
	if os.Geteuid() != 0 { // whom no rlimit binds
		control := exec.Command("sh", "-c", fmt.Sprintf("ulimit -u %d && (true; true) && exit 7; exit 8", limit))
		if err := control.Run(); control.ProcessState == nil || control.ProcessState.ExitCode() == 7 {
			t.Errorf("control: the same limit outside of a sandbox does not make fork fail: %v", err)
		}
	}
	spec := testSpec(t, "sh", "-c", "n=0; while [ $n -lt 60 ]; do sleep 20 & n=$((n+1)); done; echo $n processes")
	spec.Limits.Processes = limit
	if spec.UID == 0 && n.Held()["processes"] == "" {
		lacks(t, "cgroup", "nothing holds the number of processes")
	}
	exit, out := doRun(t, n, spec, "")
	if exit.Code != 0 || exit.Limit != "" || exit.Ended != 60 || !strings.Contains(out, "60 processes") {
		t.Errorf("%+v, %q", exit, out)
	}
	if err := crowd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the crowd is gone: %v", err)
	}
}
