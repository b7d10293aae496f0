// Command demo shows what airlock does, on a scratch workspace, by talking to a real server as an MCP
// client would: a run that lands, a run that is thrown away, a run that meets an edit made meanwhile,
// and a run that looks for what it must not see. It checks each outcome on disk and exits with status 1
// if any is not as it says.
//
//	go run ./internal/demo ./airlock
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"airlock/internal/mcpclient"
)

// patience bounds the whole demonstration, which takes a few seconds.
const patience = 2 * time.Minute

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demo PATH-OF-AIRLOCK")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if err := demonstrate(ctx, os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "\nNOT AS STATED:", err)
		os.Exit(1)
	}
}

// demonstrate plays every scene in order, each on what the one before left behind.
func demonstrate(ctx context.Context, out io.Writer, airlock string) (err error) {
	airlock, err = filepath.Abs(airlock)
	if err != nil {
		return err
	}
	stage, err := newStage(out)
	if err != nil {
		return err
	}
	defer func() {
		if removeErr := os.RemoveAll(stage.dir); err == nil {
			err = removeErr
		}
	}()

	cmd := exec.Command(airlock, "serve", "--workspace", stage.workspace, "--log-level", "warn")
	cmd.Env = stage.env()
	cmd.Stderr = os.Stderr
	stage.client, err = mcpclient.Start(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := stage.client.Close(); err == nil {
			err = closeErr
		}
	}()

	fmt.Fprintf(out, "airlock serves the workspace %s\n", stage.workspace)
	for i, scene := range scenes {
		fmt.Fprintf(out, "\n%d. %s\n\n", i+1, scene.title)
		if err := scene.play(ctx, stage); err != nil {
			return fmt.Errorf("%s: %w", scene.title, err)
		}
	}
	fmt.Fprintln(out, "\nEvery outcome was checked on disk and is as stated.")
	return nil
}

// stage is the scratch world of the demonstration: nothing of it is the user's.
type stage struct {
	out       io.Writer
	client    *mcpclient.Client
	dir       string // holds everything
	workspace string
	home      string
}

func newStage(out io.Writer) (*stage, error) {
	dir, err := os.MkdirTemp("", "airlock-demo-")
	if err != nil {
		return nil, err
	}
	s := &stage{out: out, dir: dir, workspace: filepath.Join(dir, "workspace"), home: filepath.Join(dir, "home")}
	for path, content := range map[string]string{
		filepath.Join(s.workspace, "notes.txt"): "one\n",
		filepath.Join(s.workspace, "todo.txt"):  "write tests\n",
		filepath.Join(s.home, "secret.txt"):     secret + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// env gives the server a home of its own, so that neither the user's configuration nor state is used.
func (s *stage) env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"LANG=C.UTF-8",
		"HOME=" + s.home,
		"XDG_CONFIG_HOME=" + filepath.Join(s.home, ".config"),
		"XDG_STATE_HOME=" + filepath.Join(s.dir, "state"),
	}
}

// call lets the model call run_shell, and prints the call and its answer.
func (s *stage) call(ctx context.Context, args map[string]any, progress func(string)) (string, error) {
	fmt.Fprintf(s.out, "   model> run_shell %s\n", args["command"])
	r, err := s.client.CallTool(ctx, "run_shell", args, progress)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(strings.TrimSuffix(r.Text, "\n") + "\n") {
		fmt.Fprintf(s.out, "          %s", line)
	}
	return r.Text, nil
}

// shows checks a file of the workspace and prints what it holds.
func (s *stage) shows(name, want string) error {
	got, err := os.ReadFile(filepath.Join(s.workspace, name))
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "   disk>  %s: %q\n", name, got)
	if string(got) != want {
		return fmt.Errorf("%s holds %q, not %q", name, got, want)
	}
	return nil
}

// says checks that an answer holds each of the texts.
func says(answer string, texts ...string) error {
	for _, text := range texts {
		if !strings.Contains(answer, text) {
			return fmt.Errorf("the answer lacks %q:\n%s", text, answer)
		}
	}
	return nil
}
