package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"airlock/envs"
	"airlock/tools"
)

// archive is a wheel that may be anything but honest.
type archive struct {
	name, version string
	requires      []string
	files         map[string]string
	modes         map[string]fs.FileMode
	claim         uint64 // the size that a member claims to unpack to
	calls         string // the name that its metadata says, if not its own
}

func (a archive) file() string { return a.name + "-" + a.version + "-py3-none-any.whl" }

func (a archive) metadata() string {
	name := a.name
	if a.calls != "" {
		name = a.calls
	}
	text := fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, a.version)
	for _, r := range a.requires {
		text += "Requires-Dist: " + r + "\n"
	}
	return text
}

func (a archive) bytes(t *testing.T) []byte {
	t.Helper()
	all := maps.Clone(a.files)
	if all == nil {
		all = map[string]string{}
	}
	info := a.name + "-" + a.version + ".dist-info/"
	all[info+"METADATA"] = a.metadata()
	all[info+"WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
	record := ""
	for _, name := range slices.Sorted(maps.Keys(all)) {
		record += name + ",,\n"
	}
	all[info+"RECORD"] = record + info + "RECORD,,\n"
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		h := &zip.FileHeader{Name: name}
		h.SetMode(0o644)
		if mode, ok := a.modes[name]; ok {
			h.SetMode(mode)
		}
		var err error
		var w io.Writer
		if a.claim > 0 && strings.HasSuffix(name, ".bin") {
			h.UncompressedSize64, h.CompressedSize64 = a.claim, uint64(len(all[name]))
			w, err = z.CreateRaw(h)
		} else {
			w, err = z.CreateHeader(h)
		}
		if err == nil {
			_, err = io.WriteString(w, all[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fixtureIndex serves archives as a package index does.
type fixtureIndex struct {
	*httptest.Server
	requests atomic.Int64
}

// serveIndex serves archives, and what other says first: by the path of a request.
func serveIndex(t *testing.T, archives []archive, other map[string]http.HandlerFunc) *fixtureIndex {
	t.Helper()
	pages, files := map[string]string{}, map[string][]byte{}
	for _, a := range archives {
		body := a.bytes(t)
		sum := sha256.Sum256(body)
		files["/files/"+a.file()] = body
		page := "/simple/" + envs.NormalizeName(a.name) + "/"
		pages[page] += fmt.Sprintf("<a href=\"/files/%s#sha256=%s\">%s</a>\n", a.file(), hex.EncodeToString(sum[:]), a.file())
	}
	index := &fixtureIndex{}
	index.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		index.requests.Add(1)
		if h := other[r.URL.Path]; h != nil {
			h(w, r)
		} else if page, ok := pages[r.URL.Path]; ok {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!DOCTYPE html><html><body>%s</body></html>", page)
		} else if body, ok := files[r.URL.Path]; ok {
			_, _ = w.Write(body)
		} else {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(index.Close)
	return index
}

// installed is a workspace whose packages come from an index of a test.
type installed struct {
	t      *testing.T
	places places
	open   opened
	runner tools.Runner
	conv   *envs.Conversation
}

func openWithIndex(t *testing.T, state string, index *fixtureIndex, more string) *installed {
	t.Helper()
	if err := sandboxHere(); err != nil {
		if strings.Contains(","+*require+",", ",userns,") {
			t.Fatalf("-require=userns: %v", err)
		}
		t.Skipf("no sandbox here: %v", err)
	}
	ws, home := filepath.Join(state, "ws"), filepath.Join(state, "home")
	config := filepath.Join(state, "config.toml")
	_, port, _ := strings.Cut(strings.TrimPrefix(index.URL, "http://"), ":")
	text := "[network]\nresolve = { \"index.test\" = \"127.0.0.1\" }\nprivate = [\"127.0.0.1/32\"]\n" + more +
		"[packages]\nhosts = []\nindex = \"http://index.test:" + port + "/simple\"\n"
	if !strings.Contains(more, "approve") {
		text += "allow = [\"good\", \"leaf\", \"needs-leaf\", \"bad\", \"marks\"]\n"
	}
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
	in.conv, err = in.runner.Environments(t.Context())
	if info, statErr := os.Stat(ws); statErr == nil {
		if uid, _ := ownerOf(info); err != nil && uid == os.Geteuid() {
			t.Fatal(err)
		}
	}
	return in
}

func (in *installed) install(requirements ...string) error {
	return in.installTelling(nil, requirements...)
}

// installTelling installs, and calls progress with what is being done.
func (in *installed) installTelling(progress func(string), requirements ...string) error {
	p, err := in.conv.Plan(in.t.Context(), envs.Want{Environment: "default", Requirements: requirements}, progress)
	if err == nil && len(p.Decision.Ask) > 0 {
		err = fmt.Errorf("must be asked: %v", p.Asked())
	}
	if err == nil {
		_, err = in.conv.Apply(in.t.Context(), p, progress)
	}
	return err
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
	index := serveIndex(t, []archive{
		{name: "leaf", version: "1.0", files: map[string]string{"leaf.py": "V = '1.0'\n"}},
		{name: "leaf", version: "2.0", files: map[string]string{"leaf.py": "V = '2.0'\n"}},
		{name: "needs_leaf", version: "1.0", requires: []string{"leaf<2"}, files: map[string]string{
			"needs_leaf.py": "import leaf, sys\ndef main(): print('command', leaf.V, sys.executable)\n", "needs_leaf-1.0.dist-info/entry_points.txt": "[console_scripts]\nneeds-leaf = needs_leaf:main\n",
		}},
		{name: "marks", version: "1.0", files: map[string]string{"marks.pth": "import marks\n", "marks.py": code, "setup.py": code}},
	}, nil)
	state := t.TempDir()
	in := openWithIndex(t, state, index, "")
	if err := in.install("marks", "needs-leaf"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{mark, "/tmp/airlock-test-mark"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("code of a package ran on the host and made %s", path)
		}
	}
	text := in.run(tools.Request{Tool: "run_shell", Command: "needs-leaf; python -c 'import os, json, marks; print(os.path.exists(\"/tmp/airlock-test-mark\"), marks.__file__, json.__file__)'; touch /env/x; echo $PATH | cut -d: -f1; " +
		"python3 -m venv --without-pip /tmp/v && /tmp/v/bin/python -c 'import leaf' 2>&1 | tail -1"})
	for _, want := range []string{"command 1.0 /env/bin/python", "True /env/lib/python", "Read-only file system", "\n/env/bin\n", "No module named 'leaf'"} {
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
	if err := in.install("leaf==2.0"); err == nil || !strings.Contains(err.Error(), "leaf") {
		t.Errorf("what does not fit: %v", err)
	}
	before := index.requests.Load()
	again := openWithIndex(t, state, index, "")
	if text := again.run(tools.Request{Tool: "run_python", Code: "import leaf; print(leaf.V)"}); !strings.Contains(text, "1.0\nexit=0") || index.requests.Load() != before {
		t.Errorf("another conversation, with %d requests: %s", index.requests.Load()-before, text)
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
	if in.conv != nil {
		t.Error("there are environments")
	}
	if text := in.run(tools.Request{Tool: "run_shell", Command: "id -u; echo $PATH"}); !strings.Contains(text, "65534\n") || strings.Contains(text, "/env") || !strings.Contains(text, "exit=0") {
		t.Errorf("a run: %s", text)
	}
}

// Whatever an index serves, nothing is installed of it, nothing is left, and the error names it.
func TestHostileIndexes(t *testing.T) {
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	defer elsewhere.Close()
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		block := bytes.Repeat([]byte("<a href='x'>"), 1<<14)
		for r.Context().Err() == nil {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	page := func(link string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!DOCTYPE html><html><body><a href=\"%s\">bad-1.0-py3-none-any.whl</a></body></html>", link)
		}
	}
	bad := func(files map[string]string) archive {
		return archive{name: "bad", version: "1.0", files: files}
	}
	link := bad(map[string]string{"x": "/etc/passwd"})
	link.modes = map[string]fs.FileMode{"x": 0o777 | fs.ModeSymlink}
	setid := bad(map[string]string{"bad.py": ""})
	setid.modes = map[string]fs.FileMode{"bad.py": 0o755 | fs.ModeSetuid}
	device := bad(map[string]string{"bad.py": ""})
	device.modes = map[string]fs.FileMode{"bad.py": 0o644 | fs.ModeDevice | fs.ModeCharDevice}
	huge := bad(map[string]string{"bad.bin": "x"})
	huge.claim = 10 << 30
	for _, tt := range []struct {
		name  string
		serve []archive
		other map[string]http.HandlerFunc
		want  string
	}{
		{"member leads out", []archive{bad(map[string]string{"../../../../tmp/out.py": "x"})}, nil, "leads out"},
		{"absolute member", []archive{bad(map[string]string{"/tmp/out.py": "x"})}, nil, "leads out"},
		{"set-id member", []archive{setid}, nil, "set-id"},
		{"device", []archive{device}, nil, "device"},
		{"link", []archive{link}, nil, "is a link"},
		{"claims 10 GB", []archive{huge}, nil, "unpacks to more than"},
		{"replaces python", []archive{bad(map[string]string{"bad-1.0.data/scripts/python": "#!python\n"})}, nil, "a part of the environment itself"},
		{"command python3", []archive{bad(map[string]string{"bad-1.0.dist-info/entry_points.txt": "[console_scripts]\npython3 = bad:x\n"})}, nil, "would make a command"},
		{"direct requirement", []archive{{name: "bad", version: "1.0", requires: []string{"leaf @ file:///tmp/evil/leaf-1.0-py3-none-any.whl"}}}, nil, "resolved"},
		{"another host", nil, map[string]http.HandlerFunc{"/simple/bad/": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.test:1234/simple/bad/", http.StatusFound)
		}}, "elsewhere.test:1234"},
		{"wrong hash", nil, map[string]http.HandlerFunc{"/simple/bad/": page("/files/bad-1.0-py3-none-any.whl#sha256=" + strings.Repeat("0", 64)), "/files/bad-1.0-py3-none-any.whl": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bad(nil).bytes(t))
		}}, "resolved"},
		{"endless body", nil, map[string]http.HandlerFunc{"/simple/bad/": page("/files/bad-1.0-py3-none-any.whl#sha256=" + strings.Repeat("0", 64)), "/files/bad-1.0-py3-none-any.whl": endless}, "limits.disk"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := openWithIndex(t, t.TempDir(), serveIndex(t, tt.serve, tt.other), "[limits]\ndisk = \"64MiB\"\n")
			err := in.install("bad")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if left := in.left(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if e, err := in.conv.Store().Environment("default"); err != nil || len(e.Packages) > 0 {
				t.Errorf("the environment holds %v, %v", e.Packages, err)
			}
			if _, err := os.Lstat("/tmp/out.py"); err == nil {
				t.Error("a member was written outside")
			}
		})
	}
}
