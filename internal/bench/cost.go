package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const costRounds = 15

// cost measures what a run costs against the size of its workspace and against the number of files that it changes,
// and draws both into the file svg.
func (b bench) cost(ctx context.Context, dir, svg string) error {
	bySize := panel{title: "one file changed", axis: "files in the workspace"}
	run, bare := series{name: "run_shell"}, series{name: "the command alone"}
	for _, files := range []int{10, 100, 1000, 10_000, 100_000} {
		ways, err := b.costOf(ctx, filepath.Join(dir, fmt.Sprint("size", files)), files, 1)
		if err != nil {
			return err
		}
		bare.add(files, ways[0])
		run.add(files, ways[1])
	}
	bySize.series = []series{run, bare}

	byChanges := panel{title: "in a workspace of 10,000 files", axis: "files changed"}
	run, bare = series{name: "run_shell"}, series{name: "the command alone"}
	copied := series{name: "cp -a of them"}
	for _, files := range []int{1, 10, 100, 1000, 10_000} {
		ways, err := b.costOf(ctx, filepath.Join(dir, fmt.Sprint("changes", files)), 10_000, files)
		if err != nil {
			return err
		}
		bare.add(files, ways[0])
		run.add(files, ways[1])
		copied.add(files, ways[2])
	}
	byChanges.series = []series{run, bare, copied}
	if err := os.WriteFile(svg, []byte(draw([]panel{bySize, byChanges})), 0o644); err != nil {
		return err
	}
	fmt.Printf("\nThe plot is in %s\n", svg)
	return nil
}

// costOf compares a command that rewrites files with itself in a run, and with cp -a of these files.
func (b bench) costOf(ctx context.Context, dir string, beside, changes int) (_ []*way, err error) {
	s, err := startServer(ctx, b.airlock, dir, "")
	if err != nil {
		return nil, err
	}
	defer s.close()
	bare := filepath.Join(dir, "bare")
	if err := errors.Join(fill(s.workspace, beside), fill(filepath.Join(s.workspace, "t"), changes), fill(filepath.Join(bare, "t"), changes)); err != nil {
		return nil, err
	}
	round := 0
	ways := []*way{
		{name: "the command alone", before: settle, do: func() error {
			round++
			return spawn(ctx, bare, "bash", "-c", rewrite(changes, round))
		}},
		{name: "`run_shell`", before: settle, do: func() error {
			return s.run(ctx, rewrite(changes, round), "workspace: "+strconv.Itoa(changes)+" modified")
		}},
		{
			name:   "`cp -a` of the files",
			before: func() error { return errors.Join(os.RemoveAll(filepath.Join(bare, "copy")), settle()) },
			do:     func() error { return spawn(ctx, bare, "cp", "-a", "t", "copy") },
		},
	}
	if err := b.takeInTurn(costRounds, ways); err != nil {
		return nil, err
	}
	fmt.Print(table(fmt.Sprintf("%d files changed beside %d (%d rounds)", changes, beside, b.rounds(costRounds)), ways))
	return ways, nil
}

// series is a line of a plot.
type series struct {
	name   string
	points []point
}

// point is a median, with the middle half around it.
type point struct {
	x              int
	low, mid, high time.Duration
}

func (s *series) add(x int, w *way) {
	low, high := middleHalf(w.times)
	s.points = append(s.points, point{x, low, median(w.times), high})
}
