package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

const (
	sizeRounds = 100
	smallFiles = 10
	largeFiles = 100_000
	filesInDir = 100 // of the workspace
)

// size compares a run that changes one file in a small and in a large workspace, and returns the
// ratio of their medians.
func (b bench) size(ctx context.Context, dir string) (ratio float64, err error) {
	var ways []*way
	for _, files := range []int{smallFiles, largeFiles} {
		s, err := startServer(ctx, b.airlock, filepath.Join(dir, fmt.Sprint(files)), "")
		if err != nil {
			return 0, err
		}
		defer s.close()
		if err := fill(s.workspace, files); err != nil {
			return 0, err
		}
		round := 0
		ways = append(ways, &way{
			name: fmt.Sprintf("%d files", files),
			do: func() error {
				round++
				return s.run(ctx, fmt.Sprintf("echo %d > d0/f0", round), "workspace: 1 modified: d0/f0")
			},
		})
	}
	if err := b.takeInTurn(sizeRounds, ways); err != nil {
		return 0, err
	}
	fmt.Print(table(fmt.Sprintf("One changed file, by the size of the workspace (%d rounds)", b.rounds(sizeRounds)), ways))
	return float64(median(ways[1].times)) / float64(median(ways[0].times)), nil
}

// fill makes small files in directories of a hundred: d0/f0, d0/f1, …
func fill(workspace string, files int) error {
	for i := range files {
		dir := filepath.Join(workspace, fmt.Sprintf("d%d", i/filesInDir))
		if i%filesInDir == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i%filesInDir)), []byte("content\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}
