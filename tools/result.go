package tools

import (
	"fmt"

	"airlock/proxy"
)

// Status says how a call ended.
type Status = string

// The statuses of this version.
const (
	StatusExited    Status = "exited"    // the command ended by itself; see ExitCode
	StatusTimeout   Status = "timeout"   // it was ended because its time was over
	StatusSignaled  Status = "signaled"  // it was ended by a signal that was not ours; see Signal
	StatusCancelled Status = "cancelled" // it was ended because the client or the server gave up
	StatusLimit     Status = "limit"     // it was ended because it reached a limit; see Limit
	StatusRunning   Status = "running"   // it goes on, and lands when it ends; see RunID
	StatusRefused   Status = "refused"   // it never started, for a reason outside the call; see Reason
	StatusError     Status = "error"     // it never started, or its end is unknown; see Reason

	StatusDone     Status = "done"              // a package tool did what it was asked for
	StatusApproval Status = "approval_required" // nothing was done: the user has to approve it first; see RequestID
)

// Result is what became of a call. Its JSON form is the structured content that a client gets, and
// [Result.Text] is the same for a client that shows the model only text: each is complete.
type Result struct {
	Status     Status `json:"status"`
	ExitCode   *int   `json:"exit_code,omitempty"` // with StatusExited
	Signal     string `json:"signal,omitempty"`    // "SIGSEGV", with StatusSignaled
	Limit      string `json:"limit,omitempty"`     // "processes" | "memory" | "disk"
	RunID      string `json:"run_id,omitempty"`    // what conflict files of the run end in
	DurationMS int64  `json:"duration_ms"`

	// Output and OutputDroppedBytes are what [Output.Snapshot] gives.
	Output             string `json:"output"`
	OutputDroppedBytes int64  `json:"output_dropped_bytes"`
	// OutputFile is a file of the host with the whole output, if bytes were dropped and it is kept.
	OutputFile string `json:"output_file,omitempty"`

	Workspace Workspace `json:"workspace"`
	Network   Network   `json:"network"`

	// EndedProcesses counts the background processes that were still running and were ended.
	EndedProcesses int `json:"ended_processes"`
	// Notes are further facts that the model needs, a sentence each.
	Notes []string `json:"notes"`

	// Environment, Additive, Installed and RequestID are of the package tools.
	Environment string      `json:"environment,omitempty"`
	Additive    *bool       `json:"additive,omitempty"` // whether nothing that was there changed
	Installed   []Installed `json:"installed,omitempty"`
	RequestID   string      `json:"request_id,omitempty"`

	// ofPackages is true for a result of a package tool: there is no workspace in its text.
	ofPackages bool

	// Waiting is the run whose changes wait for review, "" if they do not. The structure says so in a
	// note, the text in the line on the workspace.
	Waiting string `json:"-"`

	// Reason is the cause, with the mend, of StatusRefused and StatusError. The structure has it as
	// the first of the notes.
	Reason string `json:"-"`
	// WorkspaceLine and WithheldLine are the lines of the text on the workspace, with their prefixes
	// "workspace: " and "withheld: ". Without a WorkspaceLine nothing changed.
	WorkspaceLine string `json:"-"`
	WithheldLine  string `json:"-"`
}

// Workspace is what a call did to the workspace, or would do to it once it is reviewed. Paths are relative to it and printable.
type Workspace struct {
	Landed    bool       `json:"landed"`
	Added     []string   `json:"added"`
	Modified  []string   `json:"modified"`
	Deleted   []string   `json:"deleted"`
	Conflicts []Conflict `json:"conflicts"`
	Withheld  []Withheld `json:"withheld"`
	Discarded int        `json:"discarded"` // changes that were thrown away
}

// Conflict is a path that someone else changed while the run was going. The host's version stayed.
type Conflict struct {
	Path   string `json:"path"`
	KeptAs string `json:"kept_as"` // where the run's version is; "" if the run had deleted the path
}

// Withheld is a change that did not land although the run did.
type Withheld struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Installed is a package that was installed, replaced or removed.
type Installed struct {
	Name    string `json:"name"`
	Version string `json:"version"` // "" if it was removed
	Was     string `json:"was"`     // "" if it was not there
}

// Network is what a run was refused on the network, as airlock itself saw it.
type Network struct {
	Denied []string `json:"denied"` // "host" or "host:port", each once

	refusals []proxy.DeniedError // the same, with the reasons
}

// Refused is the Result of a call that never became a run for a reason outside the call.
func Refused(reason string) Result { return Result{Status: StatusRefused, Reason: reason} }

// Failed is the Result of a call that could not be done as it was asked for.
func Failed(reason string) Result { return Result{Status: StatusError, Reason: reason} }

// IsError reports whether the call failed as a call. An exit status, zero or not, is a result.
func (r Result) IsError() bool {
	return r.Status != StatusExited && r.Status != StatusRunning && r.Status != StatusDone
}

// structured returns r as a client's structured content: with the reason, and without a null.
func (r Result) structured() Result {
	if r.Reason != "" {
		r.Notes = append([]string{r.Reason}, r.Notes...)
	}
	if r.Waiting != "" {
		r.Notes = append([]string{fmt.Sprintf(reviewNote, r.Waiting)}, r.Notes...)
	}
	r.Notes = present(r.Notes)
	r.Network.Denied = present(r.Network.Denied)
	w := &r.Workspace
	w.Added, w.Modified, w.Deleted = present(w.Added), present(w.Modified), present(w.Deleted)
	w.Conflicts, w.Withheld = present(w.Conflicts), present(w.Withheld)
	return r
}

// reviewNote is what the structure says of changes that wait.
const reviewNote = "nothing landed yet: the changes wait for the user's review (airlock land %s), and later runs do not see them"

// present returns s, or an empty slice where s is nil.
func present[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
