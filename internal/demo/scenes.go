package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// secret lies in the demonstration's home directory, which no run may see.
const secret = "the-key-to-everything"

var scenes = []struct {
	title string
	play  func(context.Context, *stage) error
}{
	{"A run that ends well lands its changes", landed},
	{"A run that times out leaves no trace", discarded},
	{"An edit made during a run is never lost", conflicting},
	{"A run sees its workspace and little else", confined},
}

func landed(ctx context.Context, s *stage) error {
	answer, err := s.call(ctx, map[string]any{
		"command": "echo two >> notes.txt && mkdir lib && echo 'x = 1' > lib/x.py && rm todo.txt && ls",
	}, nil)
	if err != nil {
		return err
	}
	if err := says(answer, "exit=0", "workspace: 1 added, 1 modified, 1 deleted"); err != nil {
		return err
	}
	if err := s.gone("todo.txt"); err != nil {
		return err
	}
	return errors.Join(s.shows("notes.txt", "one\ntwo\n"), s.shows("lib/x.py", "x = 1\n"))
}

func discarded(ctx context.Context, s *stage) error {
	answer, err := s.call(ctx, map[string]any{
		"command":         "echo overwritten > notes.txt; rm -r lib; ls; sleep 60",
		"timeout_seconds": 1,
	}, nil)
	if err != nil {
		return err
	}
	if err := says(answer, "exit=timeout", "workspace: discarded"); err != nil {
		return err
	}
	return errors.Join(s.shows("notes.txt", "one\ntwo\n"), s.shows("lib/x.py", "x = 1\n"))
}

// conflicting edits a file on the host while a run is at work on it. The run's own progress says when it
// has begun, so nothing hangs on timing.
func conflicting(ctx context.Context, s *stage) error {
	notes := filepath.Join(s.workspace, "notes.txt")
	var edited bool
	var editErr error
	answer, err := s.call(ctx, map[string]any{
		"command": "echo by the run > notes.txt; echo z > z.txt; for i in 1 2 3 4 5; do echo working; sleep 1; done",
	}, func(progress string) {
		if edited || !strings.Contains(progress, "working") {
			return
		}
		edited = true
		fmt.Fprintf(s.out, "   you>   echo by hand > notes.txt        (while the run goes on)\n")
		editErr = os.WriteFile(notes, []byte("by hand\n"), 0o644)
	})
	if err := errors.Join(err, editErr); err != nil {
		return err
	}
	if !edited {
		return errors.New("no progress came while the run went on")
	}
	if err := says(answer, "exit=0", "1 conflict: notes.txt changed meanwhile and was kept"); err != nil {
		return err
	}
	beside, err := filepath.Glob(notes + ".conflict-*")
	if err != nil || len(beside) != 1 {
		return fmt.Errorf("want one conflict file beside notes.txt, there are %q", beside)
	}
	return errors.Join(
		s.shows("notes.txt", "by hand\n"),
		s.shows(filepath.Base(beside[0]), "by the run\n"),
		s.shows("z.txt", "z\n"),
	)
}

func confined(ctx context.Context, s *stage) error {
	answer, err := s.call(ctx, map[string]any{
		"command": "cat " + filepath.Join(s.home, "secret.txt") + "; cat /etc/shadow; exec 3<>/dev/tcp/192.0.2.1/80",
	}, nil)
	if err != nil {
		return err
	}
	if strings.Contains(answer, secret) || strings.Contains(answer, "root:") || strings.Contains(answer, "exit=0") {
		return fmt.Errorf("the run got at something:\n%s", answer)
	}
	return says(answer, "exit=", "workspace: no changes")
}

// gone checks that a file of the workspace is no more.
func (s *stage) gone(name string) error {
	if _, err := os.Lstat(filepath.Join(s.workspace, name)); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is still there (%v)", name, err)
	}
	fmt.Fprintf(s.out, "   disk>  %s: gone\n", name)
	return nil
}
