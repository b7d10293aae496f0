package main

import (
	"context"
	"errors"
	"fmt"

	"airlock/overlay"
)

func landCommand() command {
	c := command{
		name:    "land",
		args:    "[flags] [--discard] [RUN]",
		summary: "land what waits for review",
		help: `With workspace.land_on = "review" the changes of a run wait until they are landed here,
or thrown away. RUN can be left out if only one waits; if several do, they are listed.
It is a landing as any other: all of it happens or nothing, what someone changed since
the run began stays, and airlock undo takes it back. If nothing could land, the run
waits on, and the exit status is 1.

    airlock diff --workspace ~/project 7f3a09c1
    airlock land --workspace ~/project 7f3a09c1

` + commonHelp + `    --discard          throw the run away that is named
`,
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := newHistoryFlags(c.name)
		discard := flags.set.Bool("discard", false, "")
		if status, done := parseFlags(a, c, flags.set, args); done {
			return status
		}
		run, status, done := flags.oneRunArgument(a, c)
		if done {
			return status
		}
		if *discard && run == "" {
			return usageError(a, c, "--discard wants the run named")
		}
		return flags.with(a, func(w *overlay.Workspace) error {
			if *discard {
				report, err := w.DiscardWaiting(ctx, run)
				if err != nil {
					return err
				}
				printLine(a.stdout, report.Summary())
				return flags.opened.endWaitingCache(ctx, flags.places, run, (*overlay.Cache).DiscardWaiting)
			}
			run, err := land(ctx, a, w, run)
			if err != nil {
				return err
			}
			if err := flags.opened.endWaitingCache(ctx, flags.places, run, (*overlay.Cache).LandWaiting); err != nil {
				fmt.Fprintf(a.stdout, "note: not all that the run put into ~/.cache was kept: %v\n", err)
			}
			return nil
		})
	}
	return c
}

// land lands a run that waits; "" is the only one. It returns which that was.
func land(ctx context.Context, a app, w *overlay.Workspace, run string) (string, error) {
	waits, err := w.Waiting(ctx)
	if err != nil {
		return "", err
	}
	report, err := w.LandWaiting(ctx, run)
	var which *overlay.NotWaitingError
	if errors.As(err, &which) && run == "" && len(which.Waiting) > 0 {
		return "", errors.Join(printWaiting(a.stdout, a.paint(), a.columns(), waits), err)
	}
	if err != nil {
		return "", err
	}
	printReport(a.stdout, report)
	if !report.Landed {
		return "", &fault{
			Msg:  "nothing landed",
			Hint: fmt.Sprintf("`airlock diff %s` shows the run; with workspace.on_conflict = \"beside\" all else lands; `airlock land --discard %[1]s` throws it away", report.Waiting),
		}
	}
	if run == "" && len(waits) == 1 {
		run = waits[0].Run
	}
	return run, nil
}
