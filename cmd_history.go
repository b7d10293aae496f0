package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"airlock/overlay"
)

// historyFlags are those of the commands that look at what landed, or waits: log, diff, undo and land.
type historyFlags struct {
	commonFlags
	set    *flag.FlagSet
	opened opened // by with
	places places
}

func newHistoryFlags(name string) *historyFlags {
	f := &historyFlags{set: flag.NewFlagSet(name, flag.ContinueOnError)}
	f.register(f.set)
	return f
}

// oneRunArgument returns the id of a run, "" if none is named.
func (f *historyFlags) oneRunArgument(a app, c command) (run string, status int, done bool) {
	if f.set.NArg() > 1 {
		return "", usageError(a, c, fmt.Sprintf("takes one run, got %s besides", tomlText(f.set.Arg(1)))), true
	}
	return f.set.Arg(0), 0, false
}

// with opens the workspace's transactions, calls do, and closes them. It returns the exit status.
func (f *historyFlags) with(a app, do func(w *overlay.Workspace) error) int {
	s, err := f.setUp(a.environ)
	if err != nil {
		printError(a.stderr, err)
		return exitUsage
	}
	o, err := s.openHere()
	if err != nil {
		printError(a.stderr, err)
		return exitUsage
	}
	if err := s.places.makeState(); err != nil {
		printError(a.stderr, err)
		return exitFailed
	}
	f.opened, f.places = o, s.places
	// What the person does with the history is not what runs may do.
	w, err := o.transactions(s.places, "overlay", a.environ)
	if err != nil {
		printError(a.stderr, err)
		return exitFailed
	}
	for _, note := range w.TakeNotes() {
		printLine(a.stderr, "airlock: "+note)
	}
	for _, left := range leftOfLandings(w) {
		printLine(a.stderr, "airlock: "+left)
	}
	err = do(w)
	if errors.Is(err, overlay.ErrNoLanding) {
		err = noLanding(w, s.places.state, o.dir, f.set.Arg(0), err)
	}
	if err := errors.Join(forPerson(err), w.Close()); err != nil {
		printError(a.stderr, err)
		return exitFailed
	}
	return exitOK
}

// noLanding adds the way out to an [overlay.ErrNoLanding]: what was looked for may wait for review, or have landed in
// another workspace.
func noLanding(w *overlay.Workspace, state, dir, run string, err error) error {
	waiting, listErr := w.Waiting(context.Background())
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	for _, one := range waiting {
		if one.Run == run {
			return &fault{Msg: "run " + run + " has not landed, it waits for review", Hint: fmt.Sprintf("`airlock land %s` lands it, `airlock land --discard %[1]s` throws it away", run)}
		}
	}
	if hint := elsewhere(context.Background(), state, dir); hint != "" {
		return &fault{Msg: err.Error(), Hint: hint}
	}
	hint := fmt.Sprintf("`airlock log` lists the runs that landed in %s; --workspace names another workspace", tomlText(dir))
	if run == "" && len(waiting) > 0 {
		hint = "some wait for review: `airlock log` lists them, `airlock diff RUN` shows one"
	}
	return &fault{Msg: err.Error(), Hint: hint}
}

// directHint is the way out where a run was meant that wrote to the workspace itself.
const directHint = "`airlock log` lists the runs; one that landed before can be named, and what was changed since stays"

// forPerson adds the way out to errors of the history.
func forPerson(err error) error {
	var notKept *overlay.NotKeptError
	var notWaiting *overlay.NotWaitingError
	var parked *overlay.ParkedError
	var nothing *overlay.NothingLandedError
	var direct *overlay.DirectError
	switch {
	case errors.As(err, &notKept) && !notKept.Undone:
		return &fault{Msg: err.Error(), Hint: "what was replaced is kept as long as all of it takes no more than workspace.undo, or until `airlock clean` frees it; `airlock log` says which runs are kept, and one of them can be named"}
	case errors.As(err, &notWaiting) && notWaiting.Run == "" && len(notWaiting.Waiting) > 0:
		return &fault{Msg: err.Error(), Hint: "name one; `airlock log` says what they were"}
	case errors.As(err, &notWaiting):
		return &fault{Msg: err.Error(), Hint: "`airlock log` lists what landed and what waits"}
	case errors.As(err, &nothing):
		return &fault{Msg: err.Error(), Hint: "`airlock undo RUN` takes back an earlier run, and `airlock log` lists them; what was put beside a file stays until you remove it"}
	case errors.As(err, &direct) && direct.What != "":
		return &fault{Msg: err.Error() + " (" + overlay.Quote(direct.What) + ")", Hint: directHint}
	case errors.As(err, &direct):
		return &fault{Msg: err.Error(), Hint: directHint}
	case errors.As(err, &parked):
		return &fault{Msg: err.Error(), Hint: "it waits on; `airlock land --discard " + parked.Run + "` throws it away"}
	}
	return err
}

func diffCommand() command {
	c := command{
		name:    "diff",
		args:    "[flags] [RUN]",
		summary: "what a run changed, or would, line by line",
		help: `Shows what the run RUN, or the last one that landed, changed in the workspace, as a
unified diff. What was changed since is named and not shown. Of a run that waits for
review it shows what would land now. Names and control characters are escaped.

    airlock diff --workspace ~/project 7f3a09c1

` + commonHelp,
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := newHistoryFlags(c.name)
		if status, done := parseFlags(a, c, flags.set, args); done {
			return status
		}
		run, status, done := flags.oneRunArgument(a, c)
		if done {
			return status
		}
		return flags.with(a, func(w *overlay.Workspace) error {
			out, flush := a.paint().diff(a.stdout)
			return errors.Join(w.Diff(ctx, run, out), flush())
		})
	}
	return c
}

func undoCommand() command {
	c := command{
		name:    "undo",
		args:    "[flags] [RUN]",
		summary: "take back what a run landed",
		help: `Makes the workspace what it was before the run RUN landed, or the last run that was
not taken back yet. As with any landing, all of it happens or nothing, and what
someone changed since stays: the version from before the run is put beside it, as
NAME.conflict-ID. A run with workspace.mode = "direct" can't be taken back; if the last
one was such, that is said, and an earlier one has to be named. If nothing could be
taken back, the exit status is 1. What a run put beside a file for a conflict stays
until you remove it, and if nothing else of the run landed, there is nothing to take
back. An undo is listed by airlock log too, and can be taken back: undo twice is where
you began.

    airlock undo --workspace ~/project

` + commonHelp,
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := newHistoryFlags(c.name)
		if status, done := parseFlags(a, c, flags.set, args); done {
			return status
		}
		run, status, done := flags.oneRunArgument(a, c)
		if done {
			return status
		}
		return flags.with(a, func(w *overlay.Workspace) error {
			report, err := w.Undo(ctx, run)
			if err != nil {
				return err
			}
			nothing := !report.Landed || len(report.Conflicts) > 0 && len(report.Added)+len(report.Modified)+len(report.Deleted) == 0
			if !nothing {
				printLine(a.stdout, cutTo("took back "+report.Of+ofWhat(report), a.columns()))
			}
			printReport(a.stdout, report)
			if nothing {
				return errors.New("nothing of run " + report.Of + " was taken back")
			}
			return nil
		})
	}
	return c
}

// ofWhat says what the run did that was taken back.
func ofWhat(report overlay.Report) string {
	if report.OfWhat == "" {
		return ""
	}
	return ": " + overlay.Quote(report.OfWhat)
}

// printReport says what became of a landing.
func printReport(w io.Writer, report overlay.Report) {
	printLine(w, report.Summary())
	if line := report.WithheldLine(); line != "" {
		printLine(w, line)
	}
	for _, note := range report.Notes {
		printLine(w, "note: "+note)
	}
}
