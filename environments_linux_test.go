package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"airlock/envs"
	"airlock/envs/envstest"
	"airlock/tools"
)

// installed is a workspace whose packages come from an index of a test.
type installed struct {
	t      *testing.T
	places places
	open   opened
	runner tools.Runner
	conv   *envs.Conversation
	none   error // why there are no environments
}

// openWithIndex opens a workspace below state whose Python packages come from an index, with more of the
// configuration before the section [packages].
func openWithIndex(t *testing.T, state string, index *fixtureIndex, more string) *installed {
	t.Helper()
	text := more + "[packages]\nhosts = []\nindex = \"http://index.test:" + index.port() + "/simple\"\n"
	if !strings.Contains(more, "approve") {
		text += "allow = [\"good\", \"leaf\", \"needs-leaf\", \"bad\", \"marks\", \"old\", \"gone\"]\n"
	}
	return openWithPackages(t, state, text)
}

// openWithPackages opens a workspace below state with a configuration that may name index.test, which is this
// host.
func openWithPackages(t *testing.T, state, text string) *installed {
	t.Helper()
	if err := sandboxHere(); err != nil {
		if strings.Contains(","+*require+",", ",userns,") {
			t.Fatalf("-require=userns: %v", err)
		}
		t.Skipf("no sandbox here: %v", err)
	}
	ws, home := filepath.Join(state, "ws"), filepath.Join(state, "home")
	config := filepath.Join(state, "config.toml")
	text = "[network]\nresolve = { \"index.test\" = \"127.0.0.1\" }\nprivate = [\"127.0.0.1/32\"]\n" + text
	for _, dir := range []string{ws, home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(state, "state"), "XDG_CONFIG_HOME=" + state}
	common := commonFlags{workspace: ws, config: config}
	s, err := common.setUp(environ)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.openHere()
	if err != nil {
		t.Fatal(err)
	}
	in := &installed{t: t, places: s.places, open: o}
	if in.runner, err = openRunner(t.Context(), s.places, o, environ); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.runner.Close(); err != nil {
			t.Error(err)
		}
		_ = filepath.WalkDir(state, func(name string, d fs.DirEntry, _ error) error { // what is sealed t can't remove
			if d != nil && d.IsDir() {
				_ = os.Chmod(name, 0o700)
			}
			return nil
		})
	})
	in.conv, in.none = in.runner.Environments(t.Context())
	if info, err := os.Stat(ws); err == nil {
		if uid, _ := ownerOf(info); in.none != nil && uid == os.Geteuid() {
			t.Fatal(in.none)
		}
	}
	return in
}

func (in *installed) install(requirements ...string) error {
	return in.installTelling(nil, requirements...)
}

// installTelling installs, and calls progress with what is being done.
func (in *installed) installTelling(progress func(string), requirements ...string) error {
	_, _, err := in.apply(envs.Want{Environment: "default", Requirements: requirements}, progress)
	return err
}

// apply plans and installs what needs no question.
func (in *installed) apply(w envs.Want, progress func(string)) (*envs.Plan, envs.Installed, error) {
	p, err := in.conv.Plan(in.t.Context(), w, progress)
	if err == nil && len(p.Decision.Ask) > 0 {
		err = fmt.Errorf("must be asked: %v", p.Asked())
	}
	if err != nil || p.Already {
		return p, envs.Installed{}, err
	}
	done, err := in.conv.Apply(in.t.Context(), p, progress)
	return p, done, err
}

func (in *installed) run(r tools.Request) string {
	in.t.Helper()
	if err := in.runner.Permit(r); err != nil {
		return "refused: " + err.Error()
	}
	result, err := in.runner.Run(context.Background(), r, nil)
	if err != nil {
		in.t.Fatal(err)
	}
	return result.Text()
}

func (in *installed) left() []string {
	in.t.Helper()
	var left []string
	for _, kind := range []string{"work", "layers"} {
		entries, err := os.ReadDir(filepath.Join(in.places.state, "envs", kind))
		if err != nil {
			in.t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, kind+"/"+e.Name())
		}
	}
	return left
}

// With the host's own pip, in real sandboxes: installed once, seen by runs, and no code of a package runs
// anywhere but in a run.
func TestPackages(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	code := fmt.Sprintf("import os\nfor p in ('/tmp/airlock-test-mark', %q):\n    try: open(p, 'w').write('x')\n    except OSError: pass\n", mark)
	index := indexOf([]envstest.Wheel{
		{Name: "leaf", Version: "1.0", Files: map[string]string{"leaf.py": "V = '1.0'\n"}},
		{Name: "leaf", Version: "2.0", Files: map[string]string{"leaf.py": "V = '2.0'\n"}},
		{Name: "needs_leaf", Version: "1.0", Requires: []string{"leaf<2"}, Files: map[string]string{
			"needs_leaf.py": "import leaf, sys\ndef main(): print('command', leaf.V, sys.executable)\n", "needs_leaf-1.0.dist-info/entry_points.txt": "[console_scripts]\nneeds-leaf = needs_leaf:main\n",
		}},
		{Name: "marks", Version: "1.0", Files: map[string]string{"marks.pth": "import marks\n", "marks.py": code, "setup.py": code}},
		{Name: "old", Version: "1.0"},
		{Name: "old", Version: "2.0", Yanked: true}, // is not taken unasked
		{Name: "gone", Version: "1.0", Yanked: true},
	}, nil)
	// The index does not say what it knows of the first package before the call's progress says that it is asked.
	told, asked := make(chan struct{}), false
	index.before = func(r *http.Request) {
		if strings.HasPrefix(r.UserAgent(), "Python-urllib") {
			select {
			case <-told:
			case <-time.After(time.Minute):
			}
		}
	}
	index.Start()
	t.Cleanup(index.Close)
	state := t.TempDir()
	t.Setenv("PIP_INDEX_URL", "http://elsewhere.test/simple") // which no installer sees
	in := openWithIndex(t, state, index, "")
	plan, _, err := in.apply(envs.Want{Environment: "default", Requirements: []string{"marks", "needs-leaf", "old", "gone==1.0"}}, func(text string) {
		if text == "resolving 0 of 5 packages" && !asked {
			asked = true
			close(told)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !asked {
		t.Error("the progress did not say how much is resolved")
	}
	if question := plan.Question(); !strings.Contains(question, "gone 1.0, allowed, YANKED") || !strings.Contains(question, "old 1.0, allowed") || strings.Contains(question, "leaf 1.0, allowed, YANKED") {
		t.Errorf("what is yanked: %s", question)
	}
	for _, path := range []string{mark, "/tmp/airlock-test-mark"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("code of a package ran on the host and made %s", path)
		}
	}
	text := in.run(tools.Request{Tool: "run_shell", Command: "needs-leaf; python -c 'import os, json, marks; print(os.path.exists(\"/tmp/airlock-test-mark\"), marks.__file__, json.__file__)'; touch /env/x; echo $PATH | cut -d: -f1; " +
		"python3 -m venv --without-pip /tmp/v && /tmp/v/bin/python -c 'import leaf' 2>&1 | tail -1; python -c 'import leaf; print(\"compiled\", open(leaf.__cached__, \"rb\").read()[4:8])'"})
	for _, want := range []string{"command 1.0 /env/bin/python", "True /env/lib/python", "Read-only file system", "\n/env/bin\n", "No module named 'leaf'", `compiled b'\x01\x00\x00\x00'`} {
		if !strings.Contains(text, want) {
			t.Errorf("a run lacks %q:\n%s", want, text)
		}
	}
	if text := in.run(tools.Request{Tool: "run_python", Code: "import leaf; print(leaf.V)"}); !strings.Contains(text, "1.0\nexit=0") {
		t.Errorf("run_python: %s", text)
	}
	if text := in.run(tools.Request{Tool: "run_shell", Command: "sh -c 'python3 -m pip install leaf'"}); !strings.Contains(text, "package_install") {
		t.Errorf("an installer in a shell: %s", text)
	}
	if err := in.install("leaf==2.0"); err == nil || !strings.Contains(err.Error(), "needs-leaf 1.0 depends on leaf<2") || !strings.Contains(err.Error(), "The user requested leaf==2.0") {
		t.Errorf("what does not fit: %v", err)
	}
	before := index.requests.Load()
	again := openWithIndex(t, state, index, "")
	if text := again.run(tools.Request{Tool: "run_python", Code: "import leaf; print(leaf.V)"}); !strings.Contains(text, "1.0\nexit=0") || index.requests.Load() != before {
		t.Errorf("another conversation, with %d requests: %s", index.requests.Load()-before, text)
	}
}

// With the host's own pip, one package after the other is replaced: of each there is one version by its metadata and by
// its module, and the commands of the others stay.
func TestReplacingPackages(t *testing.T) {
	tool := envstest.Wheel{Name: "marks", Version: "1.0", Files: map[string]string{
		"marks.py": "def main(): print('command')\n", "marks-1.0.dist-info/entry_points.txt": "[console_scripts]\nmarks = marks:main\n",
		"marks-1.0.data/data/share/marks/x.txt": "shared\n",
	}}
	wheels := []envstest.Wheel{tool}
	for _, v := range []string{"1.0", "2.0"} {
		wheels = append(wheels, envstest.Wheel{Name: "leaf", Version: v, Files: map[string]string{"leaf.py": "V = '" + v + "'\n", "only_" + v[:1] + ".py": ""}})
	}
	in := openWithIndex(t, t.TempDir(), serveIndex(t, wheels, nil), "")
	for _, step := range []struct {
		requirement string
		additive    bool
		was         string
	}{{"leaf==1.0", true, ""}, {"marks", true, ""}, {"leaf==2.0", false, "1.0"}, {"leaf", true, ""}, {"leaf<2", false, "2.0"}} {
		plan, done, err := in.apply(envs.Want{Environment: "default", Requirements: []string{step.requirement}}, nil)
		if err != nil {
			t.Fatalf("%s: %v", step.requirement, err)
		}
		if step.was == "" && step.requirement == "leaf" {
			if !plan.Already {
				t.Errorf("%s: %+v, want it to be there", step.requirement, plan.Changes)
			}
			continue
		}
		if len(done.Changes) != 1 || done.Changes[0].Was != step.was || done.Additive != step.additive {
			t.Errorf("%s: %+v, want it in place of %q, additive %t", step.requirement, done, step.was, step.additive)
		}
	}
	text := in.run(tools.Request{Tool: "run_shell", Command: "marks; cat /env/share/marks/x.txt; ls /env/lib/python*/site-packages | grep -c only_; " +
		"python -c 'import importlib.metadata as m, leaf; print(leaf.V, sorted((d.name, d.version) for d in m.distributions(path=[\"/env/lib/python%d.%d/site-packages\" % __import__(\"sys\").version_info[:2]])))'"})
	if want := "command\nshared\n1\n1.0 [('leaf', '1.0'), ('marks', '1.0')]\n"; !strings.HasPrefix(text, want) {
		t.Errorf("a run: %s; want %s", text, want)
	}
}

// Where root serves a workspace of somebody else there are no environments, and runs go on without.
func TestPackagesForAnotherOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root serves workspaces of others")
	}
	state := t.TempDir()
	if err := os.Chmod(filepath.Dir(state), 0o755); err != nil { // which t made for root alone
		t.Fatal(err)
	}
	const nobody = 65534
	ws := filepath.Join(state, "ws")
	if err := errors.Join(os.MkdirAll(ws, 0o755), os.Chown(ws, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/usr/bin:/bin") // what is in root's home that user does not see
	in := openWithIndex(t, state, serveIndex(t, nil, nil), "")
	if in.conv != nil || in.none == nil || !strings.Contains(in.none.Error(), "root serves a workspace of somebody else") || !strings.Contains(in.none.Error(), "run airlock as its owner, uid 65534") {
		t.Errorf("there are environments, or it is not said why not: %v", in.none)
	}
	if text := in.run(tools.Request{Tool: "run_shell", Command: "id -u; echo $PATH"}); !strings.Contains(text, "65534\n") || strings.Contains(text, "/env") || !strings.Contains(text, "exit=0") {
		t.Errorf("a run: %s", text)
	}
}
