package overlay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pathState is what lies at a path and below it, as strings.
type pathState map[string]string

// state is what a kind of thing is, made by someone.
func state(kind, who string) pathState {
	switch kind {
	case "file":
		return pathState{"": "file " + who}
	case "link":
		if who == "both" {
			who = "run"
		}
		return pathState{"": "link " + who}
	case "dir":
		return pathState{"": "dir", "/f": "file " + who, "/sub": "dir", "/sub/g": "file " + who}
	case "opaque":
		return pathState{"": "dir", "/f": "file " + who}
	case "other":
		return pathState{"": "dir", "/f": "file " + who, "/h": "file " + who}
	case "FIFO", "socket":
		return pathState{"": kind}
	}
	return pathState{}
}

// by are the marks of who made a file.
var by = map[string]struct {
	text, attr string
	mode       os.FileMode
	mtime      stamp
}{
	"before": {"before", "before", 0o644, stamp{1_000_000_001, 1}},
	"run":    {"run", "run", 0o640, stamp{1_000_000_002, 22}},
	"host":   {"host", "host", 0o604, stamp{1_000_000_003, 333}},
	"both":   {"run", "host", 0o640, stamp{1_000_000_003, 333}}, // the host came to the same as the run, later
}

// lookAt describes what is at a path and below it.
func lookAt(t *testing.T, path string) pathState {
	t.Helper()
	found := pathState{}
	err := filepath.Walk(path, func(p string, i os.FileInfo, err error) error {
		if os.IsNotExist(err) && p == path {
			return nil
		}
		if err != nil {
			return err
		}
		found[strings.TrimPrefix(p, path)] = lookAtOne(t, p, i)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func lookAtOne(t *testing.T, path string, i os.FileInfo) string {
	t.Helper()
	switch i.Mode().Type() {
	case os.ModeDir:
		return "dir"
	case os.ModeNamedPipe:
		return "FIFO"
	case os.ModeSocket:
		return "socket"
	case os.ModeSymlink:
		text, err := os.Readlink(path)
		if err != nil {
			t.Fatal(err)
		}
		return "link " + text
	}
	who, other := whoMade(t, path, i)
	if who == "" {
		return "file with " + other
	}
	return "file " + who
}
