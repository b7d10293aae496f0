package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

const startRounds = 200

// benchStart compares a command that does nothing: bare, under bubblewrap, and by run_shell over stdio.
func benchStart(ctx context.Context, airlock, dir string) error {
	s, err := startServer(ctx, airlock, dir, "")
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
	ways := []*way{
		{name: "`sh -c true`", do: func() error { return spawn(ctx, s.workspace, "sh", "-c", "true") }},
		bwrap,
		{name: "`run_shell` with `true`", do: func() error { return s.run(ctx, "true", "workspace: no changes") }},
	}
	if err := takeInTurn(startRounds, ways); err != nil {
		return err
	}
	fmt.Print(table(fmt.Sprintf("A command that does nothing (%d rounds)", startRounds), ways))
	if bwrap.notRun == "" {
		fmt.Printf("\nrun_shell to bubblewrap: %.2f\n", float64(median(ways[2].times))/float64(median(bwrap.times)))
	}
	return nil
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
