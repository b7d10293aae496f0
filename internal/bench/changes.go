package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// changed are the numbers of files that a run changes, with the rounds that each is worth.
var changed = []struct{ files, rounds int }{{1, 20}, {100, 20}, {10_000, 5}}

// beside are the numbers of files of the workspace that the run does not touch.
var beside = []int{100, 100_000}

// changes compares a run that changes files with the same script without a sandbox and with a copy of
// these files by cp -a, in a small and in a large workspace, and says how much memory the server took.
func (b bench) changes(ctx context.Context, dir string) error {
	peaks := map[int]int{}
	for _, c := range changed {
		var ways []*way
		for _, files := range beside {
			s, err := startServer(ctx, b.airlock, filepath.Join(dir, fmt.Sprintf("%d-%d", c.files, files)), "")
			if err != nil {
				return err
			}
			defer s.close()
			if err := fill(s.workspace, files); err != nil {
				return err
			}
			if err := fill(filepath.Join(s.workspace, "t"), c.files); err != nil {
				return err
			}
			round := 0
			want := "workspace: " + strconv.Itoa(c.files) + " modified"
			ways = append(ways, &way{
				name: fmt.Sprintf("`run_shell` beside %d files", files),
				do: func() (err error) {
					round++
					err = s.run(ctx, rewrite(c.files, round), want)
					if peak, readErr := s.peakMemory(); readErr != nil {
						err = errors.Join(err, readErr)
					} else {
						peaks[files] = max(peaks[files], peak)
					}
					return err
				},
			})
		}
		bare := filepath.Join(dir, fmt.Sprintf("bare-%d", c.files))
		if err := fill(filepath.Join(bare, "t"), c.files); err != nil {
			return err
		}
		round := 0
		ways = append([]*way{{
			name: "`cp -a` of them",
			do: func() error {
				round++
				return spawn(ctx, bare, "cp", "-a", "t", fmt.Sprintf("copy-%d", round))
			},
		}, {
			name: "the script alone",
			do:   func() error { return spawn(ctx, bare, "bash", "-c", rewrite(c.files, round)) },
		}}, ways...)
		if err := b.takeInTurn(c.rounds, ways); err != nil {
			return err
		}
		fmt.Print(table(fmt.Sprintf("Changed files: %d (%d rounds)", c.files, b.rounds(c.rounds)), ways))
	}
	fmt.Println()
	for _, files := range beside {
		fmt.Printf("The server's memory beside %d files, at most: %d KiB\n", files, peaks[files])
	}
	return nil
}

// rewrite is a script that writes something new into the files that fill made in t, in one process.
func rewrite(files, round int) string {
	return fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo %d > t/d$((i/%d))/f$((i%%%d)); i=$((i+1)); done", files, round, filesInDir, filesInDir)
}

// peakMemory is the most that the server had resident, in KiB (VmHWM of proc(5)).
func (s *server) peakMemory() (int, error) {
	return memoryLine(fmt.Sprintf("/proc/%d/status", s.pid()), "VmHWM")
}

// memoryLine reads a line "key: N kB" of a file of proc(5), in KiB.
func memoryLine(file, key string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
		}
	}
	return 0, fmt.Errorf("bench: no %s in %s", key, file)
}
