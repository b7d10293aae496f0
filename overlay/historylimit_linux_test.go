package overlay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"airlock/internal/units"
)

// TestUndoLimit: workspace.undo bounds what is kept, the oldest goes first, and 0 keeps nothing.
func TestUndoLimit(t *testing.T) {
	set := func(limit units.Size) func(*Config) { return func(c *Config) { c.Undo = limit } }
	big := "head -c 100000 /dev/zero > big"
	f := onDisk(t, big, set(250_000))
	for i := range 4 {
		f.landed(fmt.Sprintf("%s; echo %d >> big", big, i), "")
	}
	if got := f.states(); got != "kept kept dropped dropped" {
		t.Errorf("history: %s", got)
	}
	if got := f.kept(); got > 250_000 {
		t.Errorf("%d bytes are kept", got)
	}
	var notKept *NotKeptError
	if _, err := f.Undo(context.Background(), "r1"); !errors.As(err, &notKept) {
		t.Errorf("undo of what is not kept: %v", err)
	}
	f.undo("")
	if got, want := f.host("tail -n1 big | tr -d '\\0'"), "2\n"; got != want {
		t.Errorf("after undo: %q", got)
	}

	f = onDisk(t, big, set(0))
	f.landed("echo > big; echo > new", "")
	if got := f.states(); got != "dropped" || f.kept() > 0 {
		t.Errorf("history: %s, %d bytes kept", got, f.kept())
	}
}

// TestUndoLimitOfOne: a landing that alone replaces more than workspace.undo loses its own undo, and says so, and no
// other's. The last run is not taken for one before it.
func TestUndoLimitOfOne(t *testing.T) {
	f := onDisk(t, "echo small > p; head -c 3000000 /dev/zero > big", func(c *Config) { c.Undo = 1 << 20 })
	if r := f.landed("rm p", ""); len(r.Notes) > 0 {
		t.Errorf("notes: %q", r.Notes)
	}
	r := f.landed("rm big", "")
	want := "It can't be undone: what it replaced takes 2.9 MiB, and workspace.undo is 1MiB."
	if len(r.Notes) != 1 || r.Notes[0] != want {
		t.Errorf("notes: %q, want %q", r.Notes, want)
	}
	if got := f.states(); got != "dropped kept" {
		t.Errorf("history: %s", got)
	}
	var notKept *NotKeptError
	if _, err := f.Undo(context.Background(), ""); !errors.As(err, &notKept) || notKept.Run != "r2" {
		t.Errorf("undo of the last run: %v", err)
	}
	f.undo("r1")
	if got := f.host("cat p"); got != "small\n" {
		t.Errorf("after undo: %q", got)
	}
}

// kept is how many bytes the history has, apart from the records.
func (f *fixture) kept() (bytes int64) {
	f.t.Helper()
	err := filepath.WalkDir(filepath.Join(f.scratch.base.path, historyName), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == entryName {
			return err
		}
		i, err := d.Info()
		bytes += i.Size()
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return bytes
}

// TestDamagedEntry: a record that can't be read hides no other.
func TestDamagedEntry(t *testing.T) {
	f := onDisk(t, "echo 0 > n")
	f.landed("echo 1 > n", "")
	f.landed("echo 2 > n", "")
	records, err := filepath.Glob(filepath.Join(f.scratch.base.path, historyName, "*.r1.*", entryName))
	if err != nil || len(records) != 1 {
		t.Fatalf("%v, %v", records, err)
	}
	if err := os.Truncate(records[0], 50); err != nil {
		t.Fatal(err)
	}
	if got := f.states(); got != "kept damaged" {
		t.Errorf("history: %s", got)
	}
	if _, err := f.Undo(context.Background(), "r1"); !errors.Is(err, errDamaged) {
		t.Errorf("undo: %v", err)
	}
	f.undo("r2")
}

// TestHistoryLimit: the number of landings that are listed is bounded, too.
func TestHistoryLimit(t *testing.T) {
	f := onDisk(t, "echo 0 > n")
	h := filepath.Join(f.scratch.base.path, historyName)
	if err := os.Mkdir(h, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range historyLimit + 5 {
		if err := os.Mkdir(filepath.Join(h, historyEntry{time: uint64(i), run: "old"}.String()), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f.landed("echo 1 > n", "")
	names, err := os.ReadDir(h)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != historyLimit || names[0].Name() != (historyEntry{time: 6, run: "old"}).String() {
		t.Errorf("%d entries, the first %s", len(names), names[0].Name())
	}
}
