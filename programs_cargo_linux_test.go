package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"airlock/tools"
)

// crates serves a sparse registry below /index/ and git repositories below /git/, and notes who asks.
type crates struct {
	*httptest.Server
	crate []byte // of the registry's only package, from-registry 1.0.0

	mu    sync.Mutex
	asked []string // path, and what was sent with it that could be a person's
}

func newCrates(t *testing.T, repositories string) *crates {
	t.Helper()
	git, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	var crate bytes.Buffer
	zip := gzip.NewWriter(&crate)
	archive := tar.NewWriter(zip)
	for name, content := range map[string]string{
		"Cargo.toml": "[package]\nname = \"from-registry\"\nversion = \"1.0.0\"\nedition = \"2018\"\n",
		"src/lib.rs": "pub fn say() -> &'static str { \"by the registry\" }\n",
	} {
		err = errors.Join(err, archive.WriteHeader(&tar.Header{Name: "from-registry-1.0.0/" + name, Mode: 0o644, Size: int64(len(content))}))
		_, writeErr := archive.Write([]byte(content))
		err = errors.Join(err, writeErr)
	}
	if err := errors.Join(err, archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	c := &crates{crate: crate.Bytes()}
	mux := http.NewServeMux()
	mux.HandleFunc("/index/config.json", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"dl": "http://" + r.Host + "/crates/{crate}-{version}"})
	})
	mux.HandleFunc("/index/fr/om/from-registry", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"name":"from-registry","vers":"1.0.0","deps":[],"cksum":"%x","features":{},"yanked":false}`+"\n", sha256.Sum256(c.crate))
	})
	mux.HandleFunc("/crates/from-registry-1.0.0", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(c.crate) })
	mux.Handle("/git/", &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(git)), "git-http-backend"),
		Root: "/git",
		Env:  []string{"GIT_PROJECT_ROOT=" + repositories, "GIT_HTTP_EXPORT_ALL=1"},
	})
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.asked = append(c.asked, strings.Join([]string{r.URL.Path, r.UserAgent(), r.Header.Get("Authorization")}, " "))
		c.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// takeAsked gives what was asked since the last time.
func (c *crates) takeAsked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.asked = nil }()
	return strings.Join(c.asked, "\n")
}

// cargoProject writes a program with a dependency in the registry and one in a repository, both at host:port.
func cargoProject(t *testing.T, dir, at string) {
	t.Helper()
	writeFiles(t, dir, map[string]string{
		".cargo/config.toml": "[registries.own]\nindex = \"sparse+http://" + at + "/index/\"\n[net]\nretry = 0\n[unstable]\nsparse-registry = true\n",
		"Cargo.toml": "[package]\nname = \"app\"\nversion = \"1.0.0\"\nedition = \"2018\"\n\n[dependencies]\n" +
			"from-registry = { version = \"1\", registry = \"own\" }\nfrom-git = { git = \"http://" + at + "/git/from-git\" }\n",
		"src/main.rs": "fn main() { println!(\"built {} and {}\", from_registry::say(), from_git::say()); }\n",
	})
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// treeOf lists what is below dir, with the content of its files.
func treeOf(t *testing.T, dir string) (tree []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			tree = append(tree, name)
			return err
		}
		content, err := os.ReadFile(name)
		tree = append(tree, fmt.Sprintf("%s: %q", name, content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// Cargo fetches what a project needs once, into the cache of the workspace's runs, and builds it from there when no network is
// left. What the person has in ~/.cargo it neither reads nor writes, but for the programs.
func TestCargo(t *testing.T) {
	for _, need := range []string{"cargo", "rustc", "git"} {
		if _, err := exec.LookPath(need); err != nil {
			if slices.Contains(strings.Split(*require, ","), "programs") {
				t.Fatal("-require=programs: ", err)
			}
			t.Skip(err)
		}
	}
	repositories, home, ws := t.TempDir(), t.TempDir(), t.TempDir()
	writeFiles(t, repositories, map[string]string{
		"from-git/Cargo.toml": "[package]\nname = \"from-git\"\nversion = \"1.0.0\"\nedition = \"2018\"\n",
		"from-git/src/lib.rs": "pub fn say() -> &'static str { \"by git\" }\n",
	})
	commit := exec.CommandContext(t.Context(), "sh", "-c", "git init -q && git add . && git -c user.name=a -c user.email=a@b.test commit -qm one")
	commit.Dir = filepath.Join(repositories, "from-git")
	if out, err := commit.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server := newCrates(t, repositories)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	at := "crates.test:" + address.Port()
	const secret, agent = "token-of-the-person", "agent-of-the-person"
	writeFiles(t, home, map[string]string{
		".cargo/credentials.toml": "[registries.own]\ntoken = \"" + secret + "\"\n",
		".cargo/config.toml":      "[http]\nuser-agent = \"" + agent + "\"\n",
	})
	before := treeOf(t, filepath.Join(home, ".cargo"))

	open := func(ws, config string) tools.Runner {
		runner, _ := runnerIn(t, home, ws, config, func(s *settings) { s.Limits.Memory = 1 << 30 })
		return runner
	}
	run := func(runner tools.Runner, command string) tools.Result {
		t.Helper()
		start := time.Now()
		result, err := runner.Run(t.Context(), tools.Request{Tool: "run_shell", Command: command, Timeout: 20 * time.Minute}, nil)
		if err != nil || result.Status != tools.StatusExited {
			t.Fatalf("%s: %v\n%s", command, err, result.Text())
		}
		t.Logf("%s: %v", command, time.Since(start).Round(time.Millisecond))
		return result
	}
	const closed = ""
	const built = "built by the registry and by git"
	// Until 1.68 sparse registries are unstable, and only a cargo that takes itself for a nightly one has them.
	version, err := exec.CommandContext(t.Context(), "cargo", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var nightly string
	if regexp.MustCompile(`^cargo 1\.(\d|[1-5]\d|6[0-7])\.`).Match(version) {
		nightly = "RUSTC_BOOTSTRAP=1"
	}
	build := nightly + " cargo build 2>&1 && target/debug/app"

	cargoProject(t, ws, at)
	first := open(ws, fmt.Sprintf("[network]\nmode = \"allowlist\"\nallow = [%q]\nprivate = [\"127.0.0.0/8\"]\nresolve = {\"crates.test\" = \"127.0.0.1\"}\n", at))
	result := run(first, "cat ~/.cargo/credentials.toml ~/.cargo/config.toml; "+build)
	if *result.ExitCode != 0 || !strings.Contains(result.Output, built) {
		t.Fatal("not built with the network:\n", result.Text())
	}
	asked := server.takeAsked()
	for _, want := range []string{"/index/fr/om/from-registry", "/crates/from-registry-1.0.0", "/git/from-git/"} {
		if !strings.Contains(asked, want) {
			t.Errorf("nothing asked for %s: %s", want, asked)
		}
	}
	if both := asked + result.Output; strings.Contains(both, secret) || strings.Contains(both, agent) {
		t.Errorf("what is the person's was read: %s\n%s", asked, result.Output)
	}

	second := open(ws, closed)
	result = run(second, "cargo clean 2>&1 && "+build)
	if *result.ExitCode != 0 || !strings.Contains(result.Output, built) || !strings.Contains(result.Output, "Compiling from-git") {
		t.Error("not built from the cache:\n", result.Text())
	}
	// Controls: without the cache it can't be, be that in another workspace or because the cache is gone.
	other := t.TempDir()
	cargoProject(t, other, at)
	if result = run(open(other, closed), build); *result.ExitCode == 0 {
		t.Error("control: built in another workspace, without a network:\n", result.Text())
	}
	if result = run(second, "cargo clean 2>&1; rm -rf ~/.cache/cargo; "+build); *result.ExitCode == 0 {
		t.Error("control: built with neither cache nor network:\n", result.Text())
	}
	if asked := server.takeAsked(); asked != "" {
		t.Errorf("asked without a network: %s", asked)
	}
	if after := treeOf(t, filepath.Join(home, ".cargo")); !slices.Equal(before, after) {
		t.Errorf("the person's ~/.cargo is now %q", after)
	}

	// Outside of a run it is read.
	control := exec.CommandContext(t.Context(), "cargo", "fetch")
	control.Dir = t.TempDir()
	cargoProject(t, control.Dir, address.Host)
	toolchains := os.Getenv("RUSTUP_HOME")
	if own, err := os.UserHomeDir(); toolchains == "" && err == nil {
		toolchains = filepath.Join(own, ".rustup")
	}
	control.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "RUSTUP_HOME=" + toolchains, nightly}
	out, err := control.CombinedOutput()
	if asked := server.takeAsked(); err != nil || !strings.Contains(asked, agent) {
		t.Errorf("control outside: %v, %s\nasked: %s", err, out, asked)
	}
}
