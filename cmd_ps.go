package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"airlock/internal/control"
	"airlock/overlay"
)

func psCommand() command {
	c := command{
		name:    "ps",
		args:    "[--json]",
		summary: "the runs that go on, in all of your conversations",
		help: `Lists the runs of all airlock processes of yours that go on now: id, for how long,
workspace, and what it runs. A run that waits for its turn is marked.

    airlock ps
    airlock stop 7f3a01c2

Flags:
    --json             print it as JSON
`,
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		asJSON := flags.Bool("json", false, "")
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		if status, done := noArguments(a, c, flags); done {
			return status
		}
		p, err := enterPlaces(a.environ)
		if err != nil {
			printError(a.stderr, err)
			return exitFailed
		}
		runs, err := control.List(ctx, p.control())
		status := exitOK
		if err != nil { // of one process; the others' runs are known
			printError(a.stderr, err)
			status, err = exitFailed, nil
		}
		switch {
		case *asJSON:
			err = printRunsJSON(a.stdout, runs)
		case len(runs) > 0:
			err = printRuns(a.stdout, a.columns(), runs, time.Now())
		case status == exitOK:
			fmt.Fprintln(a.stderr, "airlock: no run goes on")
		}
		if err != nil {
			printError(a.stderr, err)
			return exitFailed
		}
		return status
	}
	return c
}

// printRuns writes a line a run, with as much of each as a terminal of so many columns has room for.
func printRuns(w io.Writer, columns int, runs []control.Run, now time.Time) error {
	var lines strings.Builder
	t := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RUN\tFOR\tWORKSPACE\tWHAT")
	for _, r := range runs {
		workspace := []rune(overlay.Quote(r.Workspace))
		if most := columns / 3; columns > 0 && len(workspace) > most { // its end tells more, and so does the command
			workspace = append([]rune("…"), workspace[len(workspace)-most+1:]...)
		}
		long := now.Sub(r.Since).Truncate(time.Second).String()
		if r.State != "running" {
			long += " (" + r.State + ")"
		}
		first, rest, _ := strings.Cut(strings.TrimSpace(r.What), "\n")
		if rest != "" {
			first += " …"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s: %s\n", r.ID, long, string(workspace), r.Tool, overlay.Quote(first))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(lines.String()) {
		if _, err := fmt.Fprintln(w, cutTo(strings.TrimSuffix(line, "\n"), columns)); err != nil {
			return err
		}
	}
	return nil
}

func printRunsJSON(w io.Writer, runs []control.Run) error {
	if runs == nil {
		runs = []control.Run{}
	}
	return printJSON(w, struct {
		Runs []control.Run `json:"runs"`
	}{runs})
}

func stopCommand() command {
	c := command{
		name:    "stop",
		args:    "RUN",
		summary: "end a run that goes on, and discard its changes",
		help: `Ends a run of any of your conversations, as its timeout would: what it changed is
discarded, and its call is answered that you stopped it. ` + "`airlock ps`" + ` lists them.

    airlock stop 7f3a01c2
`,
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		if flags.NArg() != 1 {
			return usageError(a, c, "takes one run, as airlock ps lists them")
		}
		p, err := enterPlaces(a.environ)
		if err != nil {
			printError(a.stderr, err)
			return exitFailed
		}
		id := flags.Arg(0)
		known, err := control.Stop(ctx, p.control(), id)
		switch {
		case err != nil:
			printError(a.stderr, err)
			return exitFailed
		case !known:
			fmt.Fprintf(a.stderr, "airlock: no run %s goes on\nhint: `airlock ps` lists those that do\n", tomlText(id))
			return exitFailed
		}
		fmt.Fprintf(a.stdout, "stopped %s\n", id)
		return exitOK
	}
	return c
}
