package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"airlock/internal/units"
	"airlock/overlay"
	"airlock/sandbox"
)

// interrupted is the Result of a run whose context ended before it did.
func interrupted(ctx context.Context) Result {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return Result{Status: StatusTimeout}
	case errors.Is(cause, errFull):
		note := "a filesystem that the run wrote to was nearly full, so that the run was ended before limits.disk"
		return Result{Status: StatusLimit, Limit: "disk", Notes: []string{note}}
	case errors.Is(cause, errDisk):
		return Result{Status: StatusLimit, Limit: "disk"}
	}
	return Result{Status: StatusCancelled}
}

// ended is the Result of a run that came to its end by itself, or by the kernel's hand.
func ended(exit sandbox.Exit) Result {
	result := Result{EndedProcesses: exit.Ended, Limit: exit.Limit}
	switch {
	case exit.Torn:
		failed := Failed("the run renamed a directory, which was cut off by an error in the middle and could not be taken back; nothing of the run lands. Run it again")
		failed.EndedProcesses = exit.Ended
		return failed
	case exit.LimitEnded:
		result.Status = StatusLimit
		if exit.HostShort {
			result.Notes = append(result.Notes, "the host had little memory left, so that the run was ended before limits.memory, which nothing on this host holds")
		}
		return result
	case exit.Signal != "":
		result.Status, result.Signal = StatusSignaled, exit.Signal
	default:
		code := exit.Code
		result.Status, result.ExitCode = StatusExited, &code
	}
	if exit.StartError != "" {
		result.Notes = append(result.Notes, "the command could not be executed: "+exit.StartError)
	}
	if exit.Limit != "" {
		result.Notes = append(result.Notes, fmt.Sprintf("the run reached limits.%s; what it tried beyond failed", exit.Limit))
	}
	return result
}

// bound says how much a run had of what ended it; "" where nothing of that kind did. timeout is how long it might take.
func (l Limits) bound(result Result, timeout time.Duration) string {
	switch most := l.MaxTimeout.Std(); {
	case result.Status == StatusTimeout && timeout < most:
		return fmt.Sprintf("the run had %s; a call can give it up to %s (limits.timeout, limits.max_timeout)", units.Duration(timeout), l.MaxTimeout)
	case result.Status == StatusTimeout:
		return fmt.Sprintf("the run had %s, and no call can give it more (limits.max_timeout)", l.MaxTimeout)
	case result.Status != StatusLimit:
		return ""
	case result.Limit == "memory":
		return fmt.Sprintf("limits.memory is %s", l.Memory)
	case result.Limit == "disk":
		return fmt.Sprintf("limits.disk is %s", l.Disk)
	}
	return ""
}

// startFailed tells a sandbox that cannot be had on this host from a bug.
func startFailed(err error, r Request) Result {
	var setup *sandbox.SetupError
	if !errors.As(err, &setup) {
		return Failed(err.Error())
	}
	if setup.Op == sandbox.OpEnterDir {
		return Failed(fmt.Sprintf("cwd: %q: %v; takes a directory inside the workspace", r.Cwd, setup.Err))
	}
	reason := "the sandbox could not be built, and nothing runs without it: " + setup.Error()
	if setup.Hint != "" {
		reason += "\nhint: " + setup.Hint
	}
	return Refused(reason)
}

// discardReason is what stands in brackets behind "discarded N changes".
func discardReason(result Result) string {
	switch result.Status {
	case StatusExited:
		return fmt.Sprintf("exit %d", *result.ExitCode)
	case StatusSignaled:
		return "signal " + result.Signal
	case StatusLimit:
		return "limit " + result.Limit
	}
	return result.Status
}

// landingFailed is the Result of a run that did what it should, but whose transaction did not end.
// The overlay has left the workspace as it was, or its error says what it could not take back.
func landingFailed(result Result, err error) Result {
	failed := Failed(fmt.Sprintf("the run ended (%s), but its changes could not be landed: %v", result.ending(), err))
	failed.EndedProcesses, failed.Notes = result.EndedProcesses, result.Notes
	failed.WorkspaceLine = "workspace: nothing landed"
	return failed
}

// maxPaths is how many paths each list of the structure holds. A client may hand the structure to the
// model, and a run can change any number of files.
const maxPaths = 1000

// withReport adds what became of the transaction.
func withReport(result Result, report overlay.Report) Result {
	result.WorkspaceLine, result.WithheldLine = report.Summary(), report.WithheldLine()
	result.Notes = append(result.Notes, report.Notes...)
	result.Waiting = report.Waiting
	var cut []string
	ws := &result.Workspace
	ws.Landed, ws.Discarded = report.Landed, report.Discarded
	ws.Added = listed(&cut, "added", report.Added, overlay.Quote)
	ws.Modified = listed(&cut, "modified", report.Modified, overlay.Quote)
	ws.Deleted = listed(&cut, "deleted", report.Deleted, overlay.Quote)
	ws.Conflicts = listed(&cut, "conflicts", report.Conflicts, func(c overlay.Conflict) Conflict {
		kept := ""
		if c.KeptAs != "" {
			kept = overlay.Quote(c.KeptAs)
		}
		return Conflict{Path: overlay.Quote(c.Path), KeptAs: kept}
	})
	ws.Withheld = listed(&cut, "withheld", report.Withheld, func(w overlay.Withheld) Withheld {
		return Withheld{Path: overlay.Quote(w.Path), Why: w.Why}
	})
	if cut != nil {
		result.Notes = append(result.Notes, fmt.Sprintf("the structured lists hold the first %d paths only; there are %s", maxPaths, list(cut)))
	}
	return result
}

// listed gives at most maxPaths of a report's entries as a client sees them. If there are more, cut
// gets how many, in words.
func listed[T, U any](cut *[]string, name string, entries []T, show func(T) U) []U {
	if len(entries) > maxPaths {
		*cut = append(*cut, fmt.Sprintf("%s %s", grouped(int64(len(entries))), name))
		entries = entries[:maxPaths]
	}
	shown := make([]U, len(entries))
	for i, e := range entries {
		shown[i] = show(e)
	}
	return shown
}
