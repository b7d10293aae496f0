package procfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	for _, size := range []int{0, 1, room - 1, room, room + 1, 3*room + 7} {
		name := filepath.Join(t.TempDir(), "file")
		want := bytes.Repeat([]byte("abc"), size)[:size]
		if err := os.WriteFile(name, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("of %d bytes: %d, %v", size, len(got), err)
		}
	}
	want, err := os.ReadFile("/proc/self/limits")
	if got, e := Read("/proc/self/limits"); err != nil || e != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v, want %q, %v", got, e, want, err)
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a file that is not there: %v", err)
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
}

// What was read is its reader's, whatever is read later.
func TestReadIsKept(t *testing.T) {
	names := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	var got [][]byte
	for _, name := range names {
		if err := os.WriteFile(name, []byte("the text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := Read(name)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, text)
	}
	for i, name := range names {
		if string(got[i]) != "the text of "+name {
			t.Errorf("%d is %q now", i, got[i])
		}
	}
}
