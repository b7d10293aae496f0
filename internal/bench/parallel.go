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
	// thinkTime is the pause before commands that come at once: as long as an agent thinks at least, and until all spares wait.
	thinkTime = time.Second
)

// eightAtOnce are commands that do nothing, wait a tenth of a second, start Python, and compute in it for about a second.
var eightAtOnce = []string{"true", "sleep 0.1", "python3 -c pass", "python3 -c 'sum(range(20000000))'"}

// parallel compares eight commands at once, bare and by run_shell on layers of their own: after a pause, and then each followed
// by others without one.
func (b bench) parallel(ctx context.Context, dir string) error {
	for _, each := range []int{1, 4} {
		for i, command := range eightAtOnce {
			s, err := startServer(ctx, b.airlock, filepath.Join(dir, fmt.Sprintf("%d-%d", each, i)), "[workspace]\norder = \"parallel\"\n")
			if err != nil {
				return err
			}
			err = b.atOnce(ctx, s, command, each)
			s.close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// atOnce compares a command, of which each of those at once is followed by others.
func (b bench) atOnce(ctx context.Context, s *server, command string, each int) error {
	think := func() error {
		time.Sleep(thinkTime)
		return nil
	}
	ways := []*way{
		{name: fmt.Sprintf("`%s`, bare", command), before: think, do: func() error {
			return together(each, func() error { return spawn(ctx, s.workspace, "sh", "-c", command) })
		}},
		{name: fmt.Sprintf("`run_shell` with `%s`", command), before: think, do: func() error {
			return together(each, func() error { return s.run(ctx, command, "workspace: no changes") })
		}},
	}
	if err := b.takeInTurn(parallelRounds, ways); err != nil {
		return err
	}
	fmt.Print(table(fmt.Sprintf("%d commands, %d at once: `%s` (%d rounds)", atOnce*each, atOnce, command, b.rounds(parallelRounds)), ways))
	fmt.Printf("\nthroughput to bare: %.2f\n", float64(median(ways[0].times))/float64(median(ways[1].times)))
	return nil
}

// together has several do something at once, each as often.
func together(each int, do func() error) error {
	var all sync.WaitGroup
	errs := make(chan error, atOnce)
	for range atOnce {
		all.Go(func() {
			for range each {
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
