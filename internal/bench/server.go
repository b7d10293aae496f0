package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"airlock/internal/mcpclient"
)

// server is a running airlock on an empty workspace, with a home and a state directory of its own.
type server struct {
	client    *mcpclient.Client
	workspace string
	cmd       *exec.Cmd
}

func startServer(ctx context.Context, airlock, dir string) (*server, error) {
	workspace, home := filepath.Join(dir, "workspace"), filepath.Join(dir, "home")
	for _, d := range []string{workspace, home} {
		if err := os.MkdirAll(d, 0o755); err != nil {
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
