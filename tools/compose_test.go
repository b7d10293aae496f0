package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"airlock/envs"
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
		_, argv, note, err := w.python(Request{File: "a.py"})
		if err != nil || argv[0] != python || !strings.HasPrefix(note, want) || want == "" && note != "" {
			t.Errorf("%q, %q, %v; want a note %q", argv, note, err, want)
		}
		if err := os.MkdirAll(filepath.Join(ws, ".venv/bin"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
