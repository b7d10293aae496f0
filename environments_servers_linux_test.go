package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"airlock/envs"
	"airlock/envs/envstest"
	"airlock/internal/mcpclient"
)

// Two servers, each a process of its own and one for each backend that isolates, install overlapping sets into one
// environment at once: both are told that it was done, nothing is lost, and the runs of both see all of it.
func TestTwoServers(t *testing.T) {
	wheel := func(name string, requires ...string) envstest.Wheel {
		module := strings.ReplaceAll(name, "-", "_")
		return envstest.Wheel{Name: name, Version: "1.0", Requires: requires, Files: map[string]string{module + ".py": "V = '" + name + "'\n"}}
	}
	index := serveIndex(t, []envstest.Wheel{wheel("leaf"), wheel("needs-leaf", "leaf"), wheel("good")}, nil)
	state := t.TempDir()
	in := openWithIndex(t, state, index, "") // for its files, and to look at what came of it
	sets := [][]any{{"needs-leaf"}, {"needs-leaf", "good"}}
	backends := []string{"native", "bwrap"}
	if err := bubblewrapHere(); err != nil {
		if slices.Contains(strings.Split(*require, ","), "bwrap") {
			t.Fatal("-require=bwrap: ", err)
		}
		t.Log("both servers have the native backend: ", err)
		backends[1] = "native"
	}
	servers := make([]*mcpclient.Client, len(sets))
	for i := range sets {
		servers[i], _ = serveEnvironments(t, state, "ws-"+string(rune('a'+i)), backends[i])
	}
	var installing sync.WaitGroup
	for i, client := range servers {
		installing.Go(func() {
			r, err := client.CallTool(t.Context(), "package_install", map[string]any{"packages": sets[i], "wait_seconds": 600}, nil)
			if err != nil || r.IsError || !strings.Contains(r.Text, "\ndone") {
				t.Errorf("server %d (%s): %v: %s", i, backends[i], err, r.Text)
			}
		})
	}
	installing.Wait()
	e, err := in.conv.Store().Environment(envs.DefaultEnvironment)
	if err != nil || len(e.Packages) != 3 {
		t.Errorf("generation %d holds %v, %v", e.Generation, e.Packages, err)
	}
	for i, client := range servers {
		r, err := client.CallTool(t.Context(), "run_python", map[string]any{"code": "import leaf, needs_leaf, good; print(leaf.V, needs_leaf.V, good.V)"}, nil)
		if err != nil || !strings.HasPrefix(r.Text, "leaf needs-leaf good\n") {
			t.Errorf("a run of server %d (%s): %v: %s", i, backends[i], err, r.Text)
		}
	}
	if left, err := os.ReadDir(filepath.Join(in.places.state, "envs", "work")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// serveEnvironments starts a server on a workspace below state, with the configuration there, which ends with the test.
func serveEnvironments(t *testing.T, state, workspace, backend string) (*mcpclient.Client, *os.Process) {
	t.Helper()
	workspace = filepath.Join(state, workspace)
	if err := os.MkdirAll(workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("airlock", "serve", "--backend", backend, "--workspace", workspace, "--config", filepath.Join(state, "config.toml"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(state, "home"), "XDG_STATE_HOME=" + filepath.Join(state, "state"), "XDG_CONFIG_HOME=" + state}
	client, err := mcpclient.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil && !strings.Contains(err.Error(), "killed") {
			t.Error(err)
		}
	})
	return client, cmd.Process
}

// A server that is killed with SIGKILL while the host's pip or R is at any of its steps changed nothing, and takes the step
// with it; the next server removes what was left, and installs the same.
func TestServerKilledWhileInstalling(t *testing.T) {
	t.Run("python", func(t *testing.T) {
		index := serveIndex(t, []envstest.Wheel{{Name: "leaf", Version: "1.0", Files: map[string]string{"leaf.py": "V = 1\n"}}}, nil)
		state := t.TempDir()
		killAtEachStep{
			in:   openWithIndex(t, state, index, ""), // for its files
			args: map[string]any{"packages": []any{"leaf"}}, done: "installed leaf 1.0",
			tool: "run_python", use: map[string]any{"code": "import leaf; print(leaf.V)"}, shows: "1\n",
		}.try(t, state)
	})
	t.Run("r", func(t *testing.T) {
		withR(t)
		repo, ca := serveR(t, []rSource{{name: "leaf", version: "1.0", files: map[string]string{"NAMESPACE": "export(leaf)\n", "R/leaf.R": "leaf <- function() 1L\n"}}})
		state := t.TempDir()
		killAtEachStep{
			in:   openWithR(t, state, repo, ca, `"leaf"`),
			args: map[string]any{"packages": []any{"leaf"}, "language": "r"}, done: "installed leaf 1.0",
			tool: "run_shell", use: map[string]any{"command": "Rscript -e 'cat(leaf::leaf(), \"\\n\")'"}, shows: "1 \n",
		}.try(t, state)
	})
}

// killAtEachStep is an installation in whose steps the server is killed.
type killAtEachStep struct {
	in          *installed
	args        map[string]any // of package_install
	done        string         // what it says once it is done
	tool, shows string         // a run that uses what was installed, and how what it writes begins
	use         map[string]any
}

func (k killAtEachStep) try(t *testing.T, state string) {
	k.args["wait_seconds"] = 600
	in, work := k.in, filepath.Join(k.in.places.state, "envs", "work")
	for _, step := range []string{"resolve", "fetch", "install"} {
		client, process := serveEnvironments(t, state, "ws-"+step, "native")
		called := make(chan error, 1)
		go func() {
			_, err := client.CallTool(t.Context(), "package_install", k.args, nil)
			called <- err
		}()
		var running []string
		for end := time.Now().Add(2 * time.Minute); len(running) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			running, _ = filepath.Glob(filepath.Join(work, "*", step, "tmp"))
		}
		if len(running) == 0 {
			t.Fatalf("the step %q was not seen", step)
		}
		if err := process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := <-called; err == nil {
			t.Errorf("%s: the call was answered before the kill", step)
		}
		if e, err := in.conv.Store().Environment(envs.DefaultEnvironment); err != nil || len(e.Packages) > 0 {
			t.Errorf("%s: the environment holds %v, %v", step, e.Packages, err)
		}
		if layers, err := os.ReadDir(filepath.Join(in.places.state, "envs", "layers")); err != nil || len(layers) > 0 {
			t.Errorf("%s: layers: %v, %v", step, layers, err)
		}
	}
	client, _ := serveEnvironments(t, state, "ws-last", "native")
	r, err := client.CallTool(t.Context(), "package_install", k.args, nil)
	if err != nil || r.IsError || !strings.Contains(r.Text, k.done) {
		t.Fatalf("the next server: %v: %s", err, r.Text)
	}
	if left := in.left(); len(left) != 1 || !strings.HasPrefix(left[0], "layers/") {
		t.Errorf("left: %q", left)
	}
	r, err = client.CallTool(t.Context(), k.tool, k.use, nil)
	if err != nil || !strings.HasPrefix(r.Text, k.shows) {
		t.Errorf("a run: %v: %s", err, r.Text)
	}
}
