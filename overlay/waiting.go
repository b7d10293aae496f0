package overlay

import (
	"fmt"
	"strings"
	"time"
)

// Waiting is a run that ended well and waits for review.
type Waiting struct {
	Run    string
	Time   time.Time // when it began to wait
	What   string    // what the run did, as [Txn.Describe] was told
	Report Report    // what would have landed then
	Bytes  int64     // how much its layer holds
	// Fault is why it can't be landed, if it is known: it is damaged, of another version, someone
	// else's, or of another directory. It can be thrown away. The other fields may be unset then.
	Fault error
}

// WaitingRuns says how much waits for review in one workspace.
type WaitingRuns struct {
	Workspace string // its path
	Layers    string // the directory that they lie in
	Runs      []string
	Bytes     int64
}

// NotWaitingError is that a run does not wait for review, or that none was named where several do.
type NotWaitingError struct {
	Run     string   // "" if none was named
	Waiting []string // those that do
}

func (e *NotWaitingError) Error() string {
	switch {
	case len(e.Waiting) == 0 && e.Run == "":
		return "no run waits for review"
	case len(e.Waiting) == 0:
		return "run " + Quote(e.Run) + " does not wait for review; none does"
	case e.Run == "":
		return fmt.Sprintf("%d runs wait for review: %s", len(e.Waiting), strings.Join(e.Waiting, ", "))
	}
	return fmt.Sprintf("run %s does not wait for review; these do: %s", Quote(e.Run), strings.Join(e.Waiting, ", "))
}

// ParkedError is that a run that waits can't be landed. It waits on.
type ParkedError struct {
	Run string
	Err error
}

func (e *ParkedError) Error() string { return "run " + e.Run + " can't be landed: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ParkedError) Unwrap() error { return e.Err }
