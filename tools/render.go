package tools

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"airlock/internal/units"
)

// Text gives the result for a model that sees no structure: the output, a line that says how the
// run ended, one line on the workspace, and then only what there is to say.
//
// Whatever a run prints, and whatever it names its files, only the lines after the last line that
// begins with "exit=" are airlock's: each of them is one line, made so by [oneLine].
func (r Result) Text() string {
	var b strings.Builder
	b.WriteString(r.Output)
	if r.Output != "" && !strings.HasSuffix(r.Output, "\n") {
		b.WriteByte('\n')
	}
	line := func(s string) {
		b.WriteString(oneLine(s))
		b.WriteByte('\n')
	}
	if r.Output != "" && (r.Status == StatusRefused || r.Status == StatusError || r.Status == StatusRunning) {
		line("exit=" + r.Status) // else a line "exit=0" in the output would be the last one
	}
	line(r.ending())
	if r.WorkspaceLine != "" {
		line(r.WorkspaceLine)
	} else if !r.ofPackages {
		line("workspace: no changes")
	}
	if r.WithheldLine != "" {
		line(r.WithheldLine)
	}
	if len(r.Network.refusals) > 0 {
		line(networkLine(r.Network.refusals))
	}
	if r.EndedProcesses > 0 {
		line("ended: " + units.Counted(r.EndedProcesses, "background process"))
	}
	if r.OutputFile != "" {
		line(fmt.Sprintf("note: all of the output can be read with run_id=%q and offset=0; it is in %s of the user's machine", r.RunID, r.OutputFile))
	}
	for _, note := range r.Notes {
		line("note: " + note)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ending says how the call ended, as the text's line does.
func (r Result) ending() string {
	switch r.Status {
	case StatusExited:
		if r.ExitCode == nil {
			return "exit=unknown"
		}
		return "exit=" + strconv.Itoa(*r.ExitCode)
	case StatusSignaled:
		return "exit=signal " + r.Signal
	case StatusLimit:
		return "exit=limit " + r.Limit
	case StatusRunning:
		return "running run_id=" + r.RunID
	case StatusRefused, StatusError:
		if r.Status == StatusRefused {
			return "refused: " + r.Reason
		}
		return "error: " + r.Reason
	case StatusDone:
		return "done"
	case StatusApproval:
		return "approval_required: " + r.Reason
	default:
		return "exit=" + r.Status
	}
}

// list joins words as they stand in an error: "a, b, c".
func list(words []string) string { return strings.Join(words, ", ") }

// oneLine makes s a single line without anything that moves a terminal's cursor or turns the
// direction of text. Line breaks, as between a cause and its hint, become "; ".
func oneLine(s string) string {
	s = strings.TrimRight(strings.ToValidUTF8(s, "\uFFFD"), "\n")
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		switch {
		case c == '\n':
			b.WriteString("; ")
		case unprintable(c):
			q := strconv.QuoteRuneToASCII(c)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// unprintable reports control characters, line and paragraph separators, and format characters,
// among which are those that reorder text.
func unprintable(c rune) bool {
	return unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
