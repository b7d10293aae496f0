package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

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
		workspace := filepath.Join(state, "ws-"+string(rune('a'+i)))
		if err := os.Mkdir(workspace, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("airlock", "serve", "--backend", backends[i], "--workspace", workspace, "--config", filepath.Join(state, "config.toml"))
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(state, "home"), "XDG_STATE_HOME=" + filepath.Join(state, "state"), "XDG_CONFIG_HOME=" + state}
		client, err := mcpclient.Start(t.Context(), cmd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
		servers[i] = client
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
