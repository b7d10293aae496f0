//go:build unix

package untrusted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("plain", "12345678")
	write("long", "123456789")
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": "plain", "dangling": "none", "out": "/etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}

	got, err := ReadFile(dir, "plain", 8)
	if err != nil || string(got) != "12345678" {
		t.Errorf("plain: %q, %v", got, err)
	}
	if _, err := ReadFile(dir, "long", 8); err == nil || !strings.Contains(err.Error(), "longer than 8 bytes") {
		t.Errorf("long: %v, want that it is longer", err)
	}
	if _, err := ReadFile(dir, "missing", 8); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v, want fs.ErrNotExist", err)
	}
	for _, name := range []string{"dir", "link", "dangling", "out"} {
		if got, err := ReadFile(dir, name, 1<<20); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %q, %v; want ErrNotRegular", name, got, err)
		}
	}
	for _, name := range []string{"../plain", "dir/x", "", ".", "..", "/etc/passwd"} {
		if got, err := ReadFile(dir, name, 1<<20); err == nil {
			t.Errorf("%q was read: %q", name, got)
		}
	}
}

func TestReadFileDoesNotHang(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Skipf("no FIFO here: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := ReadFile(dir, "fifo", 8)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, ErrNotRegular) {
			t.Errorf("fifo: %v, want ErrNotRegular", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("reading a FIFO hangs")
	}
	go func() {
		_, err := ReadFile(filepath.Join(dir, "fifo"), "x", 8)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("a FIFO for a directory: %v, want ENOTDIR", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("a FIFO for a directory hangs")
	}
}
