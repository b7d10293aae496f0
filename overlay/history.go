package overlay

import (
	"errors"
	"fmt"
	"time"
)

// Landing is one that is in the history.
type Landing struct {
	Run    string
	Time   time.Time
	What   string // what the run did, as [Txn.Describe] was told
	Undoes string // the run that this one took back, if it is an undo
	Report Report

	// State says whether it can be undone: "kept", "dropped" (what it replaced went, by
	// workspace.undo), "undone", "damaged": then What, Undoes and Report are not known, or "direct": then
	// it is no landing, but a run that wrote to the workspace itself, and what it changed is not known.
	State string
	// Bytes is how much it replaced and removed, while that is kept.
	Bytes int64
}

// ErrNoLanding is that the history has no such landing.
var ErrNoLanding = errors.New("no run has landed")

// NotKeptError is that a landing can't be taken back or shown, because what it replaced is not kept.
type NotKeptError struct {
	Run    string
	Undone bool // it was taken back already
}

func (e *NotKeptError) Error() string {
	if e.Undone {
		return "run " + e.Run + " was taken back already"
	}
	return "what run " + e.Run + " replaced is no longer kept"
}

// stateDirect is the [Landing.State] of a run that wrote to the workspace itself.
const stateDirect = "direct"

// DirectError is that a run wrote to the workspace itself, and so can't be taken back or shown.
type DirectError struct {
	Run   string
	What  string // as [NoteDirect] was told
	Named bool   // it was asked for by its id, not as the last one
}

func (e *DirectError) Error() string {
	which := "run " + e.Run
	if !e.Named {
		which = "the last run, " + e.Run + ","
	}
	return which + ` wrote to the workspace itself, without a transaction (workspace.mode = "direct"): what it changed is not known, and can't be taken back`
}

// NothingLandedError is that of a landing nothing can be taken back: all that it did was to put versions beside what someone
// else had changed.
type NothingLandedError struct {
	Run    string
	Beside []string // the paths of those versions
}

func (e *NothingLandedError) Error() string {
	return "nothing to take back: of run " + e.Run + " " + nothingLanded(e.Beside)
}

// nothingLanded says what there is of a landing of which nothing landed.
func nothingLanded(beside []string) string {
	if len(beside) == 0 {
		return "nothing landed"
	}
	return "nothing landed but " + list(beside, namesShown, quoteItem)
}

// historyError names the operation, but where the error is one for a person already.
func historyError(op string, err error) error {
	if err == nil || errors.Is(err, ErrNoLanding) || errors.As(err, new(*NotKeptError)) || errors.As(err, new(*DirectError)) || errors.As(err, new(*NothingLandedError)) {
		return err
	}
	return fmt.Errorf("overlay: %s: %w", op, err)
}
