package main

import (
	"os"
	"testing"
)

// Only where a person may be typing is it said that a client is awaited.
func TestIsTerminal(t *testing.T) {
	pipe, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer w.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(pipe) || isTerminal(null) {
		t.Errorf("a pipe: %v, the null device: %v, want false", isTerminal(pipe), isTerminal(null))
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer terminal.Close()
	if !isTerminal(terminal) {
		t.Error("a terminal is not taken for one")
	}
}
