package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"airlock/envs/envstest"
)

// markingBackend is a build backend that leaves a mark as soon as it is imported, where it can, and tells an index.
const markingBackend = `import os, urllib.request
try:
    open(%q, "w").close()
except OSError:
    pass
try:
    urllib.request.urlopen(%q, timeout=10)
except Exception:
    pass
def prepare_metadata_for_build_wheel(directory, settings=None):
    os.mkdir(os.path.join(directory, "leaf-1.0.dist-info"))
    with open(os.path.join(directory, "leaf-1.0.dist-info", "METADATA"), "w") as f:
        f.write("Metadata-Version: 2.1\nName: leaf\nVersion: 1.0\n")
    return "leaf-1.0.dist-info"
`

// A package of the index may require another one by an address, of the host's files or of a server, and pip executes the
// sources there already when it only resolves. Here that happens in the sandbox or not at all, and such a set is refused.
// That pip does it is shown by the host's own, outside.
func TestDirectRequirements(t *testing.T) {
	dir := t.TempDir()
	mark, source := filepath.Join(dir, "mark"), filepath.Join(dir, "leaf-1.0.tar.gz")
	var ran atomic.Int64
	index := indexOf(nil, map[string]http.HandlerFunc{"/ran": func(http.ResponseWriter, *http.Request) { ran.Add(1) }})
	index.Start()
	t.Cleanup(index.Close)
	archive := tarOf(t, map[string]string{
		"leaf-1.0/PKG-INFO":       "Metadata-Version: 2.1\nName: leaf\nVersion: 1.0\n",
		"leaf-1.0/pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n[project]\nname = \"leaf\"\nversion = \"1.0\"\n",
		"leaf-1.0/backend.py":     fmt.Sprintf(markingBackend, mark, "http://index.test:"+index.port()+"/ran"),
	})
	if err := os.WriteFile(source, archive, 0o644); err != nil {
		t.Fatal(err)
	}
	index.put("leaf-1.0.tar.gz", archive)
	for name, address := range map[string]string{"by-file": "file://" + source, "by-address": "http://index.test:" + index.port() + "/files/leaf-1.0.tar.gz"} {
		w := envstest.Wheel{Name: name, Version: "1.0", Requires: []string{"leaf @ " + address}}
		index.file(w.Name, w.File(), w.Bytes(), false)
	}
	control := exec.Command("python3", "-I", "-m", "pip", "--isolated", "install", "--dry-run", "--ignore-installed", "--only-binary", ":all:", "--no-cache-dir", "--disable-pip-version-check",
		"--break-system-packages", "--index-url", index.URL+"/simple", "by-file")
	control.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}
	out, err := control.CombinedOutput()
	if _, statErr := os.Stat(mark); statErr != nil {
		if slices.Contains(strings.Split(*require, ","), "controls") {
			t.Fatalf("-require=controls: the host's pip executed nothing: %v: %s", err, out)
		}
		t.Logf("no control: the host's pip executed nothing: %v: %s", err, out)
	}
	_ = os.Remove(mark)
	in := openWithPackages(t, t.TempDir(), "[packages]\nhosts = []\nindex = \"http://index.test:"+index.port()+"/simple\"\nallow = [\"by-file\", \"by-address\", \"leaf\"]\n")
	for name, want := range map[string]string{"by-file": "No such file", "by-address": "leaf is not from the index"} {
		if err := in.install(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if left := in.left(); len(left) > 0 {
			t.Errorf("%s: left %q", name, left)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("code of a package ran outside of the sandbox")
	}
	if ran.Load() == 0 {
		t.Error("pip did not execute anything in the sandbox either: what is tested is something else")
	}
}

// tarOf packs files.
func tarOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return gzipped(b.Bytes())
}
