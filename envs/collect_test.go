package envs_test

import (
	"os"
	"path/filepath"
	"testing"

	"airlock/envs"
)

// Garbage is collected, but for what is used.
func TestCollecting(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six", "sixx"}
	c := w.begin()
	for _, requirement := range []string{"six==1.16.0", "six==1.17.0"} {
		if _, _, err := install(c, "default", requirement); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := c.Mount(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	count := func(kind string) int {
		entries, err := os.ReadDir(filepath.Join(w.dir, kind))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range entries {
			if e.IsDir() {
				n++
			}
		}
		return n
	}
	want := envs.Garbage{Layers: 1, Wheels: 1, Trees: 1}
	for _, dryRun := range []bool{true, false} {
		got, err := c.Store().Collect(t.Context(), 0, dryRun)
		if err != nil {
			t.Fatal(err)
		}
		if want.Bytes = got.Bytes; got.Bytes == 0 || got != want {
			t.Errorf("dry run %t: %+v, want %+v and some bytes", dryRun, got, want)
		}
		if dryRun && (count("layers") != 2 || count("wheels") != 2) {
			t.Error("a dry run removed something")
		}
	}
	if l, wheels, trees := count("layers"), count("wheels"), count("trees"); l != 1 || wheels != 1 || trees != 1 {
		t.Errorf("%d layers, %d wheels, %d trees are left, want one of each", l, wheels, trees)
	}
	if _, err := os.Stat(tree.Root); err != nil {
		t.Errorf("a tree in use is gone: %v", err)
	}
	tree.Release()
	if _, err := c.Store().Collect(t.Context(), 0, false); err != nil {
		t.Fatal(err)
	}
	if n := count("trees"); n != 0 {
		t.Errorf("%d trees are left that nobody uses", n)
	}
	if got := w.sees(c, "default", "six"); got != "1.17.0" {
		t.Errorf("a run after the collection sees %s", got)
	}
}

// What servers left that were killed goes, and is told as what it was: a conversation is no installation, and its packages are what
// nobody has any more, in a dry run too.
func TestCollectingAfterKilledServers(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six"}
	c := w.begin()
	p, err := c.Plan(t.Context(), envs.Want{Environment: "default", Requirements: []string{"six"}, Conversation: true}, nil)
	if err == nil {
		_, err = c.Apply(t.Context(), p, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob(filepath.Join(w.dir, "conversations", "*.json"))
	if err != nil || len(documents) != 1 {
		t.Fatalf("%q, %v", documents, err)
	}
	text, err := os.ReadFile(documents[0])
	if err != nil {
		t.Fatal(err)
	}
	// One killed with packages of its own, one without, which is what a run leaves, and two amid an installation, of which one had
	// not begun to write.
	for name, text := range map[string][]byte{
		"conversations/0badc0de.lock": nil, "conversations/0badc0de.json": text, "conversations/0badc0d1.lock": nil,
		"work/0badc0d2.lock": nil, "work/0badc0d3.lock": nil,
	} {
		if err := os.WriteFile(filepath.Join(w.dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(w.dir, "work/0badc0d2"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	want := envs.Garbage{Left: 1, Layers: 1, Wheels: 1, Trees: 1}
	for _, dryRun := range []bool{true, false} {
		got, err := c.Store().Collect(t.Context(), 0, dryRun)
		if err != nil {
			t.Fatal(err)
		}
		if want.Bytes = got.Bytes; got != want {
			t.Errorf("dry run %t: %+v, want %+v", dryRun, got, want)
		}
	}
	for _, kind := range []string{"conversations", "work"} {
		if left, err := os.ReadDir(filepath.Join(w.dir, kind)); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", kind, left, err)
		}
	}
}
