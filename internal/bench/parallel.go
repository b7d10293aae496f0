package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

const (
	atOnce         = 8
	parallelRounds = 15
	// each of atOnce does this many commands a round.
	commandsEach = 4
)

// eightAtOnce are commands that do nothing, wait a tenth of a second, start Python, and compute in it for about a second.
var eightAtOnce = []string{"true", "sleep 0.1", "python3 -c pass", "python3 -c 'sum(range(20000000))'"}

// parallel compares eight commands at once, each followed by another, bare and by run_shell on layers of their own.
func (b bench) parallel(ctx context.Context, dir string) error {
	for i, command := range eightAtOnce {
		s, err := startServer(ctx, b.airlock, filepath.Join(dir, fmt.Sprint(i)), "[workspace]\norder = \"parallel\"\n")
		if err != nil {
			return err
		}
		ways := []*way{
			{name: fmt.Sprintf("`%s`, bare", command), before: settle, do: func() error {
				return together(func() error { return spawn(ctx, s.workspace, "sh", "-c", command) })
			}},
			{name: fmt.Sprintf("`run_shell` with `%s`", command), before: settle, do: func() error {
				return together(func() error { return s.run(ctx, command, "workspace: no changes") })
			}},
		}
		err = b.takeInTurn(parallelRounds, ways)
		s.close()
		if err != nil {
			return err
		}
		fmt.Print(table(fmt.Sprintf("%d commands, %d at once: `%s` (%d rounds)", atOnce*commandsEach, atOnce, command, b.rounds(parallelRounds)), ways))
		fmt.Printf("\nthroughput to bare: %.2f\n", float64(median(ways[0].times))/float64(median(ways[1].times)))
	}
	return nil
}

// together has several do something at once, each as often.
func together(do func() error) error {
	var all sync.WaitGroup
	errs := make(chan error, atOnce)
	for range atOnce {
		all.Go(func() {
			for range commandsEach {
				if err := do(); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// settleTime is the pause before a call where what earlier ones have left to be done is not to count: agents think between
// their calls.
const settleTime = 150 * time.Millisecond

func settle() error {
	time.Sleep(settleTime)
	return nil
}
