package main

import (
	"errors"
	"io"
	"strings"

	"airlock/envs"
	"airlock/sandbox"
)

// fault is something wrong with what a person wrote: in a file, a variable or a flag.
type fault struct {
	Where string // "/home/u/.config/airlock/config.toml:3", "AIRLOCK_LIMITS_TIMEOUT", "--workspace"
	Key   string // "limits.timeout"; "" if it isn't about one
	Msg   string
	Hint  string // the way out, on a line of its own; "" if Msg says it
	Line  string // the line of the file that is meant, for a person only; "" if there is none to show
}

// Error gives place, key and message on one line; the hint stands apart in Hint.
func (f *fault) Error() string {
	text := f.Msg
	if f.Key != "" {
		text = f.Key + ": " + text
	}
	if f.Where != "" {
		text = f.Where + ": " + text
	}
	return text
}

// printError writes err for a person: each fault on a line, with the line of the file that it is about below it, then the
// ways out, each once.
func printError(w io.Writer, err error) {
	for _, one := range flatten(err) {
		for line := range strings.SplitSeq(one.Error(), "\n") {
			printLine(w, "airlock: "+line)
		}
		if f := new(fault); errors.As(one, &f) && f.Line != "" {
			printLine(w, "    "+f.Line)
		}
	}
	for _, hint := range hintsOf(err) {
		printLine(w, "hint: "+hint)
	}
}

// printLine writes a line, which a terminal gets in as many as it takes.
func printLine(w io.Writer, line string) {
	_, _ = io.WriteString(w, fold(line+"\n", columnsOf(w), len("hint: ")))
}

// hintsOf collects what the errors in err say that the person can do.
func hintsOf(err error) []string {
	var hints []string
	seen := map[string]bool{"": true}
	var walk func(error)
	walk = func(err error) {
		var hint string
		switch e := err.(type) {
		case nil:
			return
		case *fault:
			hint = e.Hint
		case *sandbox.SetupError:
			hint = e.Hint
		case *envs.NotFoundError:
			hint = e.Hint
		case interface{ Unwrap() []error }:
			for _, one := range e.Unwrap() {
				walk(one)
			}
			return
		}
		if !seen[hint] {
			seen[hint] = true
			hints = append(hints, hint)
		}
		walk(errors.Unwrap(err))
	}
	walk(err)
	return hints
}
