package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"airlock/envs"
	"airlock/overlay"
	"airlock/sandbox"
)

// A .venv that a run cannot use is not passed over in silence: the packages in it are missed.
func TestUnusedVenvIsNoted(t *testing.T) {
	ws := t.TempDir()
	python := filepath.Join(ws, "python3")
	if err := os.WriteFile(python, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	w := NewRunner(RunnerOptions{View: View{Workspace: ws, Python: envs.FindOptions{Workspace: ws, System: []string{python}}}})
	for _, want := range []string{"", "the project's .venv is not used: "} {
		_, argv, note, err := w.python(Request{File: "a.py"}, surroundings{})
		if err != nil || argv[0] != python || !strings.HasPrefix(note, want) || want == "" && note != "" {
			t.Errorf("%q, %q, %v; want a note %q", argv, note, err, want)
		}
		if err := os.MkdirAll(filepath.Join(ws, ".venv/bin"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// The links on the way to a layer are made again, but for those that are in a layer already.
func TestLinksTo(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string) string { return filepath.Join(dir, path) }
	for _, path := range []string{"ws", "real/git"} {
		if err := os.MkdirAll(at(path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"way": "real", "ws/inside": "../way", "ws/proc": "/proc/self/cwd"} {
		if err := os.Symlink(text, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	layers := []overlay.Layer{{Lower: at("ws")}, {Lower: at("real/git")}}
	way := sandbox.Mount{Kind: sandbox.MountSymlink, Source: "real", Target: at("way")}
	for path, want := range map[string][]sandbox.Mount{
		"":                  nil,
		at("real/git"):      nil,
		at("way/git"):       {way},
		at("ws/inside/git"): {way},
		at("ws/proc"):       nil,
		at("gone"):          nil,
	} {
		if diff := cmp.Diff(want, linksTo(path, layers), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}
