package main

import (
	"context"
	"io"
	"strings"
	"time"

	"airlock/internal/units"
	"airlock/overlay"
)

func logCommand() command {
	c := command{
		name:    "log",
		args:    "[flags] [--json]",
		summary: "the runs that landed, or wait for review",
		help: `Lists the runs that landed in the workspace, the last one first: id, time, what it
was, what it changed, and what of it was withheld. A run that was taken back, or whose
replaced files are no longer kept, is marked so. What waits for review comes before,
with what would land. A run with workspace.mode = "direct" is listed, and no more.

    airlock log --workspace ~/project

` + commonHelp + `    --json             print it as JSON, with every path; one that is no plain text
                       is a Go string literal and begins with a double quote
`,
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := newHistoryFlags(c.name)
		asJSON := flags.set.Bool("json", false, "")
		if status, done := parseFlags(a, c, flags.set, args); done {
			return status
		}
		if status, done := noArguments(a, c, flags.set); done {
			return status
		}
		return flags.with(a, func(w *overlay.Workspace) error {
			waiting, err := w.Waiting(ctx)
			if err != nil {
				return err
			}
			landings, err := w.History(ctx)
			if err != nil {
				return err
			}
			if *asJSON {
				return printLogJSON(a.stdout, waiting, landings)
			}
			if len(waiting)+len(landings) == 0 {
				printError(a.stderr, &fault{Msg: "no run has landed in this workspace", Hint: elsewhere(ctx, flags.places.state, flags.opened.dir)})
			}
			if err := printWaiting(a.stdout, a.paint(), a.columns(), waiting); err != nil {
				return err
			}
			return printLog(a.stdout, a.paint(), a.columns(), landings)
		})
	}
	return c
}

// printWaiting writes an entry a run.
func printWaiting(w io.Writer, p paint, columns int, waiting []overlay.Waiting) error {
	var b strings.Builder
	for _, r := range waiting {
		if r.Fault != nil {
			logEntry(&b, p, columns, r.Run, r.Time, r.What, "waits", r.Fault.Error())
			continue
		}
		logEntry(&b, p, columns, r.Run, r.Time, r.What, "waits, holds "+units.Size(r.Bytes).Rounded(), didOf(r.Report)...)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printLog writes an entry a run.
func printLog(w io.Writer, p paint, columns int, landings []overlay.Landing) error {
	var b strings.Builder
	for _, l := range landings {
		state := l.State
		if state == "kept" {
			state = ""
		}
		did := didOf(l.Report)
		switch l.State {
		case "damaged":
			did = []string{"what it changed can't be read"}
		case "direct":
			did = []string{"written directly, without a transaction: what it changed is not known"}
		}
		logEntry(&b, p, columns, l.Run, l.Time, l.What, state, did...)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// didOf says what a run did, and what of that was withheld, as its result did.
func didOf(r overlay.Report) []string {
	did := []string{strings.TrimPrefix(r.Summary(), "workspace: ")}
	if line := r.WithheldLine(); line != "" {
		did = append(did, line)
	}
	return did
}

// logEntry writes which run it was, in one line, with as much of the command as a terminal of so many columns has room for,
// and below it what the run did.
func logEntry(b *strings.Builder, p paint, columns int, run string, at time.Time, what, state string, did ...string) {
	b.WriteString(p.in(bold, run))
	room := columns - len(run)
	if !at.IsZero() {
		const layout = "2006-01-02 15:04:05"
		b.WriteString("  " + at.Local().Format(layout))
		room -= len("  " + layout)
	}
	if state != "" {
		state = "(" + state + ")"
		room -= len("  " + state)
		state = "  " + p.in(yellow, state)
	}
	if what != "" {
		b.WriteString("  " + cutTo(overlay.Quote(what), room-len("  ")))
	}
	b.WriteString(state + "\n")
	for _, line := range did {
		b.WriteString(fold("    "+line+"\n", columns, 0))
	}
}

// printLogJSON writes one document.
func printLogJSON(w io.Writer, waiting []overlay.Waiting, landings []overlay.Landing) error {
	type conflict struct {
		Path   string `json:"path"`
		KeptAs string `json:"kept_as,omitempty"`
	}
	type withheld struct {
		Path string `json:"path"`
		Why  string `json:"why"`
	}
	type landing struct {
		Run       string     `json:"run"`
		Time      time.Time  `json:"time"`
		What      string     `json:"what,omitempty"`
		Undoes    string     `json:"undoes,omitempty"`
		State     string     `json:"state"`
		Bytes     int64      `json:"kept_bytes"`
		Added     []string   `json:"added"`
		Modified  []string   `json:"modified"`
		Deleted   []string   `json:"deleted"`
		Conflicts []conflict `json:"conflicts"`
		Withheld  []withheld `json:"withheld"`
		Fault     string     `json:"fault,omitempty"`
	}
	document := struct {
		Runs []landing `json:"runs"`
	}{[]landing{}}
	write := func(l overlay.Landing, fault error) {
		out := landing{
			Run: l.Run, Time: l.Time.UTC(), What: l.What, Undoes: l.Undoes, State: l.State, Bytes: l.Bytes,
			Added: literals(l.Report.Added), Modified: literals(l.Report.Modified), Deleted: literals(l.Report.Deleted),
			Conflicts: []conflict{}, Withheld: []withheld{},
		}
		for _, c := range l.Report.Conflicts {
			kept := ""
			if c.KeptAs != "" {
				kept = overlay.Literal(c.KeptAs)
			}
			out.Conflicts = append(out.Conflicts, conflict{overlay.Literal(c.Path), kept})
		}
		for _, w := range l.Report.Withheld {
			out.Withheld = append(out.Withheld, withheld{overlay.Literal(w.Path), w.Why})
		}
		if fault != nil {
			out.Fault = fault.Error()
		}
		document.Runs = append(document.Runs, out)
	}
	for _, r := range waiting {
		write(overlay.Landing{Run: r.Run, Time: r.Time, What: r.What, State: "waiting", Bytes: r.Bytes, Report: r.Report}, r.Fault)
	}
	for _, l := range landings {
		write(l, nil)
	}
	return printJSON(w, document)
}

func literals(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = overlay.Literal(p)
	}
	return out
}
