package main

import (
	"os"
	"path/filepath"
	"testing"
)

// What a server that was killed left goes when the next one starts; what one that lives has stays.
func TestOutputsClear(t *testing.T) {
	state := t.TempDir()
	live, dead := outputs{state: state}, outputs{state: state}
	for _, o := range []*outputs{&live, &dead} {
		f, err := o.file("1.txt")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	dead.held.Unlock() // as the kernel does
	next := outputs{state: state}
	if err := next.clear(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dead.dir); !os.IsNotExist(err) {
		t.Errorf("what was left is there: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(live.dir, "1.txt")); err != nil {
		t.Errorf("a living server's file: %v", err)
	}
	if err := live.close(); err != nil {
		t.Fatal(err)
	}
	// A state directory without any is not made.
	empty := outputs{state: filepath.Join(state, "none")}
	if err := empty.clear(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(empty.state); !os.IsNotExist(err) {
		t.Errorf("the state directory was made: %v", err)
	}
}
