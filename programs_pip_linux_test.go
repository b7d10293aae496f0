package main

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"airlock/envs/envstest"
	"airlock/tools"
)

// fetchByPip is what programs do that fetch packages into environments of their own, as tox does. The commands of pip are refused in a
// run, which is a matter of manners; by pip's own cache such a program is not to fetch a file twice.
const fetchByPip = `import subprocess, sys
pip = "import sys; from pip._internal.cli.main import main; sys.exit(main())"
subprocess.run([sys.executable, "-c", pip, "install", "--disable-pip-version-check", "--no-deps", "--target", "/tmp/got",
    "--index-url", sys.argv[1], "--trusted-host", "index.test", "good"], check=True)
sys.path.insert(0, "/tmp/got")
import good
print("good from", good.__file__)
`

// What pip has fetched in a run that landed it does not fetch again in the next, and runs of another workspace do.
func TestPipCache(t *testing.T) {
	const python = "/usr/bin/python3"
	if out, err := exec.CommandContext(t.Context(), python, "-m", "pip", "--version").CombinedOutput(); err != nil {
		if slices.Contains(strings.Split(*require, ","), "programs") {
			t.Fatalf("-require=programs: pip: %v: %s", err, out)
		}
		t.Skipf("pip: %v: %s", err, out)
	}
	wheel := envstest.Wheel{Name: "good", Version: "1.0", Files: map[string]string{"good/__init__.py": ""}}
	file := "/files/" + wheel.File()
	var fetched atomic.Int64
	index := serveIndex(t, []envstest.Wheel{wheel}, map[string]http.HandlerFunc{
		file: func(w http.ResponseWriter, r *http.Request) {
			fetched.Add(1)
			w.Header().Set("Cache-Control", "max-age=365000000, immutable") // as files.pythonhosted.org says
			w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
			_, _ = w.Write(wheel.Bytes())
		},
	})
	at := "index.test:" + index.port()
	config := fmt.Sprintf("[network]\nmode = \"allowlist\"\nallow = [%q]\nprivate = [\"127.0.0.0/8\"]\nresolve = {\"index.test\" = \"127.0.0.1\"}\n", at)
	home, ws, other := t.TempDir(), t.TempDir(), t.TempDir()
	for i, run := range []struct {
		workspace, before string
		fetched           int64
	}{
		{ws, "", 1},
		{ws, "", 0},
		{other, "", 1}, // controls
		{ws, "rm -rf ~/.cache/pip; ", 1},
	} {
		writeFiles(t, run.workspace, map[string]string{"fetch.py": fetchByPip})
		runner, _ := runnerIn(t, home, run.workspace, config, func(*settings) {})
		fetched.Store(0)
		command := run.before + python + " fetch.py http://" + at + "/simple/ 2>&1"
		result, err := runner.Run(t.Context(), tools.Request{Tool: "run_shell", Command: command, Timeout: 10 * time.Minute}, nil)
		if err != nil || result.Status != tools.StatusExited || *result.ExitCode != 0 || !strings.Contains(result.Output, "good from /tmp/got/good/__init__.py") {
			t.Fatalf("run %d: %v\n%s", i+1, err, result.Text())
		}
		if got := fetched.Load(); got != run.fetched {
			t.Errorf("run %d fetched the file %d times, want %d\n%s", i+1, got, run.fetched, result.Text())
		}
	}
}
