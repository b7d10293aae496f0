package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"airlock/tools"
)

// Where root serves a workspace of somebody else, what lands is that user's, as all else there, and so is what takes the place
// of a file.
func TestWhatLandsBelongsToTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root serves workspaces of others")
	}
	const uid, gid = 54321, 54322
	base := t.TempDir()
	ws := filepath.Join(base, "ws")
	file := filepath.Join(base, "config.toml")
	err := errors.Join(
		os.Chmod(filepath.Dir(base), 0o755), os.Chmod(base, 0o755), // made for root alone
		os.WriteFile(file, nil, 0o600),
		os.MkdirAll(filepath.Join(ws, "dir"), 0o755),
		os.WriteFile(filepath.Join(ws, "old"), []byte("1\n"), 0o644),
		os.WriteFile(filepath.Join(ws, "dir", "replaced"), []byte("1\n"), 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
	owners := func(check func(name string, uid, gid uint32) error) error {
		return filepath.WalkDir(ws, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			st := info.Sys().(*syscall.Stat_t)
			return check(name, st.Uid, st.Gid)
		})
	}
	if err := owners(func(name string, _, _ uint32) error { return os.Lchown(name, uid, gid) }); err != nil {
		t.Fatal(err)
	}
	environ := []string{"HOME=" + base, "PATH=/usr/bin:/bin"}
	s, err := commonFlags{config: file}.setUp(environ)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.open(ws)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := openRunner(t.Context(), s.places, o, environ)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := runner.Close(); err != nil {
			t.Error(err)
		}
	}()
	const command = "id -u; echo 2 >> old; mkdir -p new/deep; echo 3 > new/deep/f; ln -s f new/deep/l; echo 4 > x; mv x dir/replaced; chmod 700 dir"
	result, err := runner.Run(t.Context(), tools.Request{Tool: "run_shell", Command: command}, nil)
	if err != nil || !strings.HasPrefix(result.Output, "54321\n") || !result.Workspace.Landed {
		t.Fatalf("%v\n%s", err, result.Text())
	}
	seen := 0
	err = owners(func(name string, u, g uint32) error {
		seen++
		if u != uid || g != gid {
			return fmt.Errorf("%s belongs to %d:%d", name, u, g)
		}
		return nil
	})
	if err != nil || seen != 8 {
		t.Errorf("%d entries, %v", seen, err)
	}
}
