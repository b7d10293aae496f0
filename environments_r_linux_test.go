package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"airlock/envs"
	"airlock/tools"
)

// rSource is a source package of R.
type rSource struct {
	name, version, fields string
	files                 map[string]string
	more                  []tar.Header // members without content, beside the files
}

func (s rSource) file() string { return s.name + "_" + s.version + ".tar.gz" }

func (s rSource) description() string {
	return "Package: " + s.name + "\nVersion: " + s.version + "\n" + s.fields
}

func (s rSource) bytes(t *testing.T) []byte {
	t.Helper()
	all := maps.Clone(s.files)
	all["DESCRIPTION"] = s.description() + "Title: A Test\nDescription: It is a test.\nLicense: GPL-2\nAuthor: A\nMaintainer: A <a@index.test>\n"
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		err := w.WriteHeader(&tar.Header{Name: s.name + "/" + name, Mode: 0o644, Size: int64(len(all[name]))})
		if err == nil {
			_, err = w.Write([]byte(all[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range s.more {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// serveR serves source packages as a repository of R packages does, over https with the certificate of a private
// authority.
func serveR(t *testing.T, sources []rSource) (server *httptest.Server, ca string) {
	t.Helper()
	files, index := map[string][]byte{}, ""
	for _, s := range sources {
		body := s.bytes(t)
		index += s.description() + fmt.Sprintf("MD5sum: %x\n\n", md5.Sum(body))
		files["/src/contrib/"+s.file()] = body
	}
	files["/src/contrib/PACKAGES"] = []byte(index)
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	}))
	certificate, ca := privateCA(t)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, ca
}

// withR skips, or fails with -require=programs, where R or what its packages are built with is missing.
func withR(t *testing.T) {
	t.Helper()
	for _, program := range []string{"/usr/bin/Rscript", "gcc", "make"} {
		if _, err := exec.LookPath(program); err != nil {
			if slices.Contains(strings.Split(*require, ","), "programs") {
				t.Fatal("-require=programs: ", err)
			}
			t.Skip("packages of R are not tested: ", err)
		}
	}
}

// openWithR opens a workspace below state whose R packages come from a repository.
func openWithR(t *testing.T, state string, repo *httptest.Server, ca, allow string) *installed {
	t.Helper()
	_, port, _ := strings.Cut(strings.TrimPrefix(repo.URL, "https://"), ":")
	return openWithPackages(t, state, "[packages]\nhosts = []\ncert = \""+ca+"\"\n[packages.r]\nrepo = \"https://index.test:"+port+"\"\nallow = ["+allow+"]\ndeny = [\"refused\"]\n")
}

func (in *installed) installR(requirements ...string) (*envs.Plan, envs.Installed, error) {
	return in.apply(envs.Want{Environment: "default", Language: envs.LanguageR, Requirements: requirements}, nil)
}

// cutOffR installs a package, and ends it while R has the library locked. Nothing of it is left.
func (in *installed) cutOffR(requirement string) {
	in.t.Helper()
	plan, err := in.conv.Plan(in.t.Context(), envs.Want{Environment: "default", Language: envs.LanguageR, Requirements: []string{requirement}}, nil)
	if err != nil {
		in.t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(in.t.Context())
	defer end(nil)
	locked := errors.New("cut off by the test")
	go func() {
		for ctx.Err() == nil {
			if locks, _ := filepath.Glob(filepath.Join(in.places.state, "envs", "work", "*", "env", "00LOCK*")); len(locks) > 0 {
				end(locked)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	if _, err := in.conv.Apply(ctx, plan, nil); !errors.Is(err, locked) {
		in.t.Errorf("an installation that was cut off: %v", err)
	}
	if left := in.left(); len(left) > 0 {
		in.t.Errorf("an installation that was cut off left %q", left)
	}
}

// From a repository of source packages, built by the host's own R in real sandboxes without a network: what is
// required first, what does not build or is cut off not at all, and no code of a package runs on the host.
func TestRPackages(t *testing.T) {
	withR(t)
	mark := filepath.Join(t.TempDir(), "mark")
	repo, ca := serveR(t, []rSource{
		{name: "low", version: "1.0-2", fields: "NeedsCompilation: yes\n", files: map[string]string{
			"NAMESPACE": "export(low)\nuseDynLib(low, clow)\n", "R/low.R": "low <- function() .Call(clow)\n",
			"src/low.c": "#include <Rinternals.h>\nSEXP clow(void) { return ScalarInteger(42); }\n",
		}},
		{name: "high", version: "2.1", fields: "Imports: low (>= 1.0-1), methods, stats\n", files: map[string]string{
			"NAMESPACE": "export(high)\nimportFrom(low, low)\n", "R/high.R": fmt.Sprintf("high <- function() low() + 1L\ntry(file.create(%q))\ntry(file.create('/tmp/airlock-test-r'))\n", mark),
		}},
		{name: "refused", version: "1.0", files: map[string]string{"NAMESPACE": ""}},
		{name: "broken", version: "1.0", fields: "Imports: low\n", files: map[string]string{"NAMESPACE": "", "R/x.R": "stop('it does not build')\n"}},
	})
	state := t.TempDir()
	in := openWithR(t, state, repo, ca, `"low>=1.0", "high", "broken"`)
	in.cutOffR("high")
	plan, done, err := in.installR("high")
	if err != nil || !done.Additive || len(done.Changes) != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	for _, p := range plan.Set {
		if len(p.SHA256) != 64 || p.Size == 0 {
			t.Errorf("%s was decided on without its hash or size: %+v", p.Name, p)
		}
	}
	for _, path := range []string{mark, "/tmp/airlock-test-r"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("code of a package ran on the host and made %s", path)
		}
	}
	text := in.run(tools.Request{Tool: "run_shell", Command: `Rscript -e 'library(high); cat(high(), .libPaths()[1], "\n")'; touch /env-r/x`})
	if !strings.Contains(text, "43 /env-r \n") || !strings.Contains(text, "Read-only file system") {
		t.Errorf("a run: %s", text)
	}
	if _, _, err := in.installR("broken"); err == nil || !strings.Contains(err.Error(), "it does not build") {
		t.Errorf("what does not build: %v", err)
	}
	if _, _, err := in.installR("refused"); err == nil || !strings.Contains(err.Error(), `refused 1.0 (packages.r.deny has "refused")`) {
		t.Errorf("what is denied: %v", err)
	}
	if left := in.left(); len(left) != 1 {
		t.Errorf("left beside the layer of what was installed: %q", left)
	}
	if plan, _, err := in.installR("high>=2", "low"); err != nil || !plan.Already {
		t.Errorf("what is there: %+v, %v", plan, err)
	}
}

// The archive of a source package is unpacked and built in the sandbox, whatever is in it. What it leaves in the library
// is the package that was decided on, without links and set-id bits, or nothing is kept.
func TestHostileRPackages(t *testing.T) {
	withR(t)
	outside := filepath.Join(t.TempDir(), "outside")
	empty := map[string]string{"NAMESPACE": ""}
	repo, ca := serveR(t, []rSource{
		{name: "stray", version: "1.0", files: map[string]string{"NAMESPACE": "", "R/x.R": "dir.create('/env-r/refused')\nwriteLines('Package: refused', '/env-r/refused/DESCRIPTION')\n"}},
		{name: "twofold", version: "1.0", files: empty, more: []tar.Header{{Name: "refused/DESCRIPTION", Mode: 0o644}}},
		{name: "leads", version: "1.0", files: empty, more: []tar.Header{{Name: "leads/../../../../../.." + outside, Mode: 0o644}, {Name: outside, Mode: 0o644}}},
		{name: "odd", version: "1.0", files: empty, more: []tar.Header{
			{Name: "odd/inst/", Typeflag: tar.TypeDir, Mode: 0o755},
			{Name: "odd/inst/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
			{Name: "odd/inst/setid", Mode: 0o6755},
			{Name: "odd/inst/pipe", Typeflag: tar.TypeFifo, Mode: 0o644},
		}},
	})
	in := openWithR(t, t.TempDir(), repo, ca, `"stray", "twofold", "leads", "odd"`)
	for name, want := range map[string]string{
		"stray": `the installation left "refused", which is no package of the set`, "twofold": "twofold_1.0.tar.gz", "leads": "the packages could not be installed",
	} {
		if _, _, err := in.installR(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if left := in.left(); len(left) > 0 {
			t.Errorf("%s: left %q", name, left)
		}
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("an archive was unpacked outside of the sandbox")
	}
	if _, _, err := in.installR("odd"); err != nil {
		t.Errorf("odd: %v", err)
	}
	text := in.run(tools.Request{Tool: "run_shell", Command: "ls /env-r; find /env-r/ -mindepth 1 ! -type f ! -type d; find /env-r/ -mindepth 1 -perm /6222; ls /env-r/odd/setid"})
	if !strings.HasPrefix(text, "odd\n/env-r/odd/setid\nexit=0") {
		t.Errorf("a run: %s", text)
	}
}
