package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"airlock/envs/envstest"
)

const (
	packageFiles  = 5000
	packageRounds = 20
)

// packages asks what an environment of many files costs: its installation, its composition, the start of
// Python in it beside a plain virtual environment, and a second conversation with the same set.
func (b bench) packages(ctx context.Context, dir string) error {
	index := serveWheel()
	defer index.Close()
	config := "[network]\nresolve = { \"index.test\" = \"127.0.0.1\" }\nprivate = [\"127.0.0.1/32\"]\n[packages]\nhosts = []\nallow = [\"many\"]\n" +
		"index = \"http://index.test" + index.URL[strings.LastIndex(index.URL, ":"):] + "/simple\"\n"
	s, err := startServer(ctx, b.airlock, filepath.Join(dir, "env"), config)
	if err != nil {
		return err
	}
	defer func() { s.close() }()
	start := time.Now()
	if err := s.install(ctx, "default"); err != nil {
		return err
	}
	fmt.Printf("\n### Packages\n\nInstalling a wheel of %d modules, with its bytecode: %s ms\n", packageFiles, ms(time.Since(start)))

	plain, err := startServer(ctx, b.airlock, filepath.Join(dir, "venv"), "")
	if err != nil {
		return err
	}
	defer plain.close()
	if err := spawn(ctx, plain.workspace, "/usr/bin/python3", "-m", "venv", "--without-pip", ".venv"); err != nil {
		return err
	}
	trees := filepath.Join(dir, "env", "state", "airlock", "envs", "trees")
	ways := []*way{
		{name: "`run_python` with `pass`, the project's own empty venv", do: func() error { return plain.python(ctx, "pass") }},
		{name: fmt.Sprintf("the same in an environment of %d modules", packageFiles), do: func() error { return s.python(ctx, "pass") }},
		{name: "the same, and the environment is composed first", before: func() error { return removeTrees(trees) }, do: func() error { return s.python(ctx, "pass") }},
	}
	if err := b.takeInTurn(packageRounds, ways); err != nil {
		return err
	}
	fmt.Print(table(fmt.Sprintf("The start of Python in an environment (%d rounds)", b.rounds(packageRounds)), ways))

	s.close()
	if s, err = startServer(ctx, b.airlock, filepath.Join(dir, "env"), config); err != nil {
		return err
	}
	fmt.Printf("\n#### A second conversation with the same set\n\n| | ms | requests to the index | of the wheel | files copied or linked |\n|---|---:|---:|---:|---:|\n")
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"its first `run_python`, which imports of it", func() error { return s.python(ctx, "import many.p0.m0") }},
		{"`package_install` of the same", func() error { return s.install(ctx, "default") }},
		{"`package_install` of the same into another environment", func() error { return s.install(ctx, "another") }},
	} {
		files, err := filesBelow(trees, filepath.Join(filepath.Dir(trees), "layers"))
		if err != nil {
			return err
		}
		asked, fetched, start := index.requests.Load(), index.downloads.Load(), time.Now()
		if err := step.do(); err != nil {
			return err
		}
		took := time.Since(start)
		now, err := filesBelow(trees, filepath.Join(filepath.Dir(trees), "layers"))
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %s | %d | %d | %d |\n", step.name, ms(took), index.requests.Load()-asked, index.downloads.Load()-fetched, now-files)
	}
	return nil
}

// filesBelow counts the names of files in directories.
func filesBelow(dirs ...string) (n int, err error) {
	for _, dir := range dirs {
		err = errors.Join(err, filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !strings.HasSuffix(d.Name(), ".lease") {
				n++
			}
			return err
		}))
	}
	return n, err
}

// wheelIndex is a package index of one wheel.
type wheelIndex struct {
	*httptest.Server
	requests, downloads atomic.Int64 // of all that it serves, and of the wheel
}

// serveWheel serves a wheel of many modules as a package index does.
func serveWheel() *wheelIndex {
	wheel := envstest.Wheel{Name: "many", Version: "1.0", Files: map[string]string{}}
	for i := range packageFiles {
		wheel.Files[fmt.Sprintf("many/p%d/m%d.py", i/filesInDir, i)] = fmt.Sprintf("def f%d(x):\n    return x + %d\n", i, i)
	}
	body, index := wheel.Bytes(), new(wheelIndex)
	index.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		index.requests.Add(1)
		if r.URL.Path == "/simple/many/" {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<a href=\"/files/%s#sha256=%s\" data-dist-info-metadata=\"true\">%[1]s</a>", wheel.File(), wheel.SHA256())
			return
		}
		if strings.HasSuffix(r.URL.Path, ".metadata") { // PEP 658: a set is resolved without its wheels
			fmt.Fprint(w, "Metadata-Version: 2.1\nName: many\nVersion: 1.0\n")
			return
		}
		index.downloads.Add(1)
		_, _ = w.Write(body)
	}))
	return index
}

// removeTrees removes composed environments, whose directories are read-only.
func removeTrees(dir string) error {
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(name, 0o700)
		}
		return err
	})
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && err == nil {
			err = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	return err
}

// install calls package_install for the wheel.
func (s *server) install(ctx context.Context, environment string) error {
	r, err := s.client.CallTool(ctx, "package_install", map[string]any{"packages": []string{"many"}, "environment": environment, "wait_seconds": 600}, nil)
	if err == nil && r.IsError {
		err = fmt.Errorf("package_install answered %q", r.Text)
	}
	return err
}

// python calls run_python.
func (s *server) python(ctx context.Context, code string) error {
	r, err := s.client.CallTool(ctx, "run_python", map[string]any{"code": code}, nil)
	if err == nil && (r.IsError || !strings.Contains(r.Text, "exit=0")) {
		err = fmt.Errorf("run_python %q answered %q", code, r.Text)
	}
	return err
}
