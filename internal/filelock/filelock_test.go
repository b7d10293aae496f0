//go:build unix

package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	try := func(mode Mode, want error) *Lock {
		t.Helper()
		l, err := Try(path, mode)
		if !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
		return l
	}
	a, b := try(Shared, nil), try(Shared, nil)
	try(Alone, ErrHeld)
	alone := func(l *Lock) (was bool) {
		t.Helper()
		if err := l.WhileAlone(func() { was = true; try(Shared, ErrHeld) }); err != nil {
			t.Error(err)
		}
		try(Alone, ErrHeld) // it is shared again
		return was
	}
	if alone(a) {
		t.Error("alone, while another shares it")
	}
	b.Unlock()
	if !alone(a) {
		t.Error("not alone, while nobody else has it")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Wait(ended, path, Alone); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that is cancelled: %v", err)
	}
	a.Unlock()
	try(Alone, nil).Unlock()
}

// Who waits for a lock whose file its holder removes has the lock on another file in the end.
func TestFileIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Try(path, Alone)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		l, err := Wait(t.Context(), path, Alone)
		if err == nil {
			_, err = os.Stat(path)
			l.Unlock()
		}
		got <- err
	}()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	held.Unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// A program that is started doesn't hold the lock on, and where somebody put a link no file is made.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	l, err := Try(filepath.Join(dir, "lock"), Alone)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock()
	if flags, err := unix.FcntlInt(l.f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags of the descriptor: %#x, %v", flags, err)
	}
	if err := os.Symlink("elsewhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	var failed *os.PathError
	if _, err := Try(filepath.Join(dir, "link"), Alone); !errors.As(err, &failed) || failed.Op != "open" {
		t.Errorf("a lock through a link: %v", err)
	}
}
