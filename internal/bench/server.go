package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"airlock/internal/mcpclient"
)

// server is a running airlock on a workspace of its own, with a home and a state directory that a later one of the
// same directory shares.
type server struct {
	client    *mcpclient.Client
	workspace string
	cmd       *exec.Cmd
}

// startServer starts one with a user file that holds config; "" for none.
func startServer(ctx context.Context, airlock, dir, config string) (*server, error) {
	workspace, home := filepath.Join(dir, "workspace"), filepath.Join(dir, "home")
	for _, d := range []string{workspace, home} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	if config != "" {
		file := filepath.Join(home, ".config", "airlock", "config.toml")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(config), 0o600)); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(airlock, "serve", "--workspace", workspace, "--log-level", "warn")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + home,
		"XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "XDG_STATE_HOME=" + filepath.Join(dir, "state"),
	}
	cmd.Stderr = os.Stderr
	client, err := mcpclient.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return &server{client: client, workspace: workspace, cmd: cmd}, nil
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// run calls run_shell. A time counts only if the run did its work, so the answer must hold the text.
func (s *server) run(ctx context.Context, command, wantText string) error {
	r, err := s.client.CallTool(ctx, "run_shell", map[string]any{"command": command}, nil)
	if err != nil {
		return err
	}
	if r.IsError || !strings.Contains(r.Text, wantText) {
		return fmt.Errorf("run_shell %q answered %q, which lacks %q", command, r.Text, wantText)
	}
	return nil
}

func (s *server) close() {
	if err := s.client.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: the server ended badly:", err)
	}
}
