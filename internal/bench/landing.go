package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const landingRounds = 7

// landing compares the landing of a run's files, from the end of its command to the answer, with cp -a of them.
func (b bench) landing(ctx context.Context, dir string) error {
	for _, test := range []struct{ name, make, answer string }{
		{"10,000 small files", "mkdir new; for d in $(seq 100); do mkdir new/d$d; for f in $(seq 100); do echo $f > new/d$d/f$f; done; done", "added"},
		{"one file of 1 GiB", "mkdir new; head -c 1073741824 /dev/zero | tr '\\0' x > new/big", "added"},
	} {
		dir := filepath.Join(dir, test.name)
		s, err := startServer(ctx, b.airlock, dir, "")
		if err != nil {
			return err
		}
		bare := filepath.Join(dir, "bare")
		if err := os.Mkdir(bare, 0o755); err != nil {
			s.close()
			return err
		}
		if err := spawn(ctx, bare, "bash", "-c", test.make); err != nil {
			s.close()
			return err
		}
		clean := func(path string) func() error {
			return func() error { return errors.Join(os.RemoveAll(path), settle()) }
		}
		ways := []*way{
			{name: "`cp -a` of them", before: clean(filepath.Join(bare, "copy")), do: func() error { return spawn(ctx, bare, "cp", "-a", "new", "copy") }},
			{name: "the landing of a run that made them", before: clean(filepath.Join(s.workspace, "new")), measure: func() (time.Duration, error) {
				return s.landing(ctx, test.make, test.answer)
			}},
		}
		err = b.takeInTurn(landingRounds, ways)
		s.close()
		if err != nil {
			return err
		}
		fmt.Print(table(fmt.Sprintf("Landing of %s (%d rounds)", test.name, b.rounds(landingRounds)), ways))
	}
	return nil
}

// landing is the time from the end of the run's command, which it prints, to the answer.
func (s *server) landing(ctx context.Context, command, answer string) (time.Duration, error) {
	r, err := s.client.CallTool(ctx, "run_shell", map[string]any{"command": "(" + command + ")\ndate +ended=%s%N"}, nil)
	now := time.Now()
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(r.Text, "ended=")
	digits, _, _ := strings.Cut(rest, "\n")
	ended, parseErr := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if r.IsError || !found || parseErr != nil || !strings.Contains(r.Text, answer) {
		return 0, fmt.Errorf("a run that makes files answered %q", r.Text)
	}
	return now.Sub(time.Unix(0, ended)), nil
}
