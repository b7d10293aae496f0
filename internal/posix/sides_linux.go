package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sides are the two places in which everything is done: a bare directory, and a workspace in which a run does
// it, as the same user.
type sides struct {
	airlock string
	dir     string // holds everything of ours
	program string // this one, where a run sees it
	env     []string
}

// configuration lets every normal exit land, as what is tested fails on purpose now and then.
const configuration = `
[workspace]
land_on = "exit"
[limits]
timeout = "30m"
[sandbox]
read = [%q]
env = { LANG = "C.UTF-8" }
`

func newSides(airlock string) (_ *sides, err error) {
	s := new(sides)
	if s.airlock, err = filepath.Abs(airlock); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "airlock-posix-"); err != nil {
		return nil, err
	}
	home, tool := filepath.Join(s.dir, "home"), filepath.Join(s.dir, "tool")
	s.program = filepath.Join(tool, "posix")
	self, err := os.Executable()
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	err = errors.Join(
		os.MkdirAll(filepath.Join(home, "airlock"), 0o700),
		os.Mkdir(tool, 0o755),
		copyFile(self, s.program),
		os.WriteFile(filepath.Join(home, "airlock", "config.toml"), fmt.Appendf(nil, configuration, tool), 0o600),
	)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8",
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(s.dir, "state"),
	}
	return s, nil
}

func (s *sides) close() error { return removeAll(s.dir) }

// pair makes a bare directory and a workspace for one comparison, both empty.
func (s *sides) pair(name string) (bare, workspace string, err error) {
	// Names of one length, since some programs write them into files.
	bare, workspace = filepath.Join(s.dir, name, "out"), filepath.Join(s.dir, name, "run")
	return bare, workspace, errors.Join(os.MkdirAll(bare, 0o755), os.MkdirAll(workspace, 0o755))
}

// bare runs a command in a directory. Root does without its capabilities, as in a run.
func (s *sides) bare(ctx context.Context, dir string, argv ...string) ([]byte, error) {
	if os.Getuid() == 0 {
		argv = append([]string{"setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"}, argv...)
	}
	return s.start(ctx, dir, io.Discard, argv)
}

// run runs a command in a workspace, in a run of airlock's, which lands. said is what airlock says of that.
func (s *sides) run(ctx context.Context, workspace string, argv ...string) (out []byte, said string, err error) {
	var text bytes.Buffer
	out, err = s.start(ctx, workspace, &text, append([]string{s.airlock, "run", "--workspace", workspace, "--timeout", "30m", "--"}, argv...))
	return out, text.String(), err
}

func (s *sides) start(ctx context.Context, dir string, stderr io.Writer, argv []string) ([]byte, error) {
	var out, text bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, s.env
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(stderr, &text)
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("%q: %w: %s%s", argv, err, tail(out.Bytes()), tail(text.Bytes()))
	}
	return out.Bytes(), nil
}

// tail is the end of what a program wrote.
func tail(b []byte) []byte {
	const most = 2000
	return b[max(0, len(b)-most):]
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

// removeAll removes a tree whose directories may forbid it.
func removeAll(dir string) error {
	_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			_ = unix.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
