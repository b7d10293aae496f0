package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// A client that does not read holds up nobody but itself.
func TestClientThatDoesNotRead(t *testing.T) {
	inR, inW := io.Pipe()
	s := New(testOptions(newFakeRunner()))
	ctx, cancel := context.WithCancelCause(t.Context())
	served := make(chan error, 1)
	stuck := make(chan struct{})
	t.Cleanup(func() { close(stuck); inW.Close() })
	go func() {
		served <- Serve(ctx, inR, writerFunc(func([]byte) (int, error) { <-stuck; return 0, os.ErrClosed }), s)
	}()
	for i := range 1000 {
		fmt.Fprintln(inW, ping(fmt.Sprint(i)))
	}
	cancel(errors.New("end"))
	select {
	case <-served:
	case <-time.After(6 * time.Second):
		t.Fatal("Serve does not return")
	}
}

// Nor does it make memory grow: no more runs begin, and no more is read.
func TestMemoryOfAClientThatDoesNotRead(t *testing.T) {
	f := newFakeRunner()
	s := New(testOptions(f))
	stuck := make(chan struct{})
	box := newOutbox(writerFunc(func([]byte) (int, error) { <-stuck; return 0, os.ErrClosed }), func(error) {})
	c := newConn(s, box)
	ctx, cancel := context.WithCancel(t.Context())
	defer func() {
		cancel()
		close(stuck)
		<-c.drain()
	}()
	read := make(chan error, 1)
	var in strings.Builder
	for i := range 40 {
		in.WriteString(shell(fmt.Sprint(i), "echo "+strings.Repeat("x", 100_000)) + "\n")
	}
	for i := range 300_000 {
		in.WriteString(ping(fmt.Sprint(i)) + "\n")
	}
	go func() { read <- c.read(s.mcp.WithContext(ctx, c.session), strings.NewReader(in.String())) }()
	select {
	case <-read:
		t.Error("all was read")
	case <-time.After(2 * time.Second):
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	if box.size > throttleSize+1<<20 {
		t.Errorf("%s bytes wait to be written", grouped(int64(box.size)))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
