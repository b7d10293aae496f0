package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const startRounds = 200

// start compares a command that does nothing: bare, under bubblewrap, and by run_shell over stdio.
func (b bench) start(ctx context.Context, dir string) error {
	s, err := startServer(ctx, b.airlock, dir, "")
	if err != nil {
		return err
	}
	defer s.close()

	bwrap := &way{name: "`bwrap … sh -c true`, no overlay"}
	if path, err := exec.LookPath("bwrap"); err != nil {
		bwrap.notRun = "bubblewrap is not installed"
	} else {
		argv := []string{
			"--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--bind", s.workspace, s.workspace,
			"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--", "sh", "-c", "true",
		}
		bwrap.do = func() error { return spawn(ctx, s.workspace, path, argv...) }
		if err := bwrap.do(); err != nil {
			bwrap.notRun = "bubblewrap fails here: " + err.Error()
		}
	}
	bare := func() error { return spawn(ctx, s.workspace, "sh", "-c", "true") }
	run := func() error { return s.run(ctx, "true", "workspace: no changes") }
	bwrap.before = settle
	ways := []*way{
		{name: "`sh -c true`", before: settle, do: bare},
		bwrap,
		{name: "`run_shell` with `true`", before: settle, do: run},
		{name: "`bash -c true`, which is what a run executes", before: settle, do: func() error { return bash(ctx, s.workspace, "true") }},
	}
	if err := b.takeInTurn(startRounds, ways); err != nil {
		return err
	}
	fmt.Print(table(fmt.Sprintf("A command that does nothing, after a pause (%d rounds)", b.rounds(startRounds)), ways))
	if bwrap.notRun == "" {
		fmt.Printf("\nrun_shell to bubblewrap: %.2f\n", float64(median(ways[2].times))/float64(median(bwrap.times)))
	}
	ways = []*way{{name: "`sh -c true`", do: bare}, {name: "`run_shell` with `true`", do: run}}
	if err := b.takeInTurn(startRounds, ways); err != nil {
		return err
	}
	fmt.Print(table(fmt.Sprintf("The same, one right after the other (%d rounds)", b.rounds(startRounds)), ways))
	return b.python(ctx, s)
}

// python compares a Python program that does nothing.
func (b bench) python(ctx context.Context, s *server) error {
	r, err := s.client.CallTool(ctx, "run_python", map[string]any{"code": "import sys; print('interpreter=' + sys.executable)"}, nil)
	if err != nil {
		return err
	}
	_, rest, found := strings.Cut(r.Text, "interpreter=")
	interpreter, _, _ := strings.Cut(rest, "\n")
	if !found {
		fmt.Printf("\nrun_python: not run: %.200s\n", r.Text)
		return nil
	}
	ways := []*way{
		{name: "`python3 -c pass`", before: settle, do: func() error { return spawn(ctx, s.workspace, interpreter, "-c", "pass") }},
		{name: "`run_python` with `pass`", before: settle, do: func() error {
			r, err := s.client.CallTool(ctx, "run_python", map[string]any{"code": "pass"}, nil)
			if err == nil && (r.IsError || !strings.Contains(r.Text, "workspace: no changes")) {
				err = fmt.Errorf("run_python answered %q", r.Text)
			}
			return err
		}},
	}
	if err := b.takeInTurn(startRounds, ways); err != nil {
		return err
	}
	fmt.Print(table(fmt.Sprintf("A Python program that does nothing, after a pause (%d rounds)", b.rounds(startRounds)), ways))
	return nil
}

// bash executes a command as a run does, but for the sandbox.
func bash(ctx context.Context, dir, command string) error {
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	return cmd.Run()
}

// spawn starts a program with pipes, as a tool server without a sandbox would, and waits for it.
func spawn(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = filepath.Clean(dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.200s", err, out)
	}
	return nil
}
