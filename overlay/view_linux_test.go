package overlay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestView shows a workspace that can't be written, from a state directory on another filesystem: nothing
// is made in or beside the workspace, and what is hidden is absent.
func TestView(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "ws")
	state := filepath.Join(otherFilesystem(t, base), "state")
	for _, d := range []string{dir, filepath.Join(dir, "a")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".env", "a/.env", "a/v"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("SECRET\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := Defaults()
	c.Mode = "readonly"
	w, err := Open(dir, state, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Begin(context.Background(), "r1"); !errors.Is(err, errReadOnly) {
		t.Errorf("a transaction in a read-only workspace: %v", err)
	}
	hidden, err := NewHidden([]string{".env"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Hide(hidden); err != nil {
		t.Fatal(err)
	}
	v, err := w.View(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	layers := v.Layers()
	if len(layers) != 1 || layers[0].Upper != "" || layers[0].Lower != dir {
		t.Fatalf("layers: %+v", layers)
	}
	run(t, layers[0], "! cat .env; ! cat a/.env; cat a/v; ! (echo x > x); ! rm a/v; ! mv a b; test \"$(ls -A)\" = a")
	// What changes is another mask, and the old one goes with the last view of it.
	if err := os.WriteFile(filepath.Join(dir, "a", "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b", ".env"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	second, err := w.View(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	run(t, second.Layers()[0], "! cat b/.env; test -e a/x; ! cat .env")
	for _, v := range []*View{v, second} {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if names, err := w.scratch.server.list(""); err != nil || len(names) != 1 {
		t.Errorf("left: %q, %v", names, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	for _, d := range []string{base, dir} {
		names, err := os.ReadDir(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if strings.HasPrefix(n.Name(), ".airlock") {
				t.Errorf("%s is in %s", n.Name(), d)
			}
		}
	}
}
