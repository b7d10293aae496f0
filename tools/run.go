package tools

import (
	"context"
	"io"
	"time"

	"airlock/envs"
)

// Request is one call of run_shell or run_python after its arguments were checked.
type Request struct {
	Tool string // "run_shell" | "run_python"

	// RunID names a run that goes on, which the call waits for; what to run is not given then. Stop ends it.
	// Offset, if not negative, asks for its output from there on.
	RunID  string
	Stop   bool
	Offset int64
	// Wait is how long the call waits for its run; negative: the default.
	Wait time.Duration

	Command    string // run_shell
	Code, File string // run_python: one of them
	Args       []string
	// Cwd is the working directory as the model gave it; "" is the workspace. A relative one does
	// not lead out of the workspace by its own "..", but links and absolute paths were not followed.
	Cwd       string
	Stdin     string
	Env       map[string]string
	Timeout   time.Duration // 0: the default
	OnFailure string        // "", "discard", "keep"
	// Environment is the Python environment that the run has; "" is the conversation's.
	Environment string

	// Tee also gets the output, as it comes and byte for byte; nil for none.
	Tee io.Writer
	// ID is the run's; "" is a new one. Printing, if not nil, is called with its output before it begins.
	ID       string
	Printing func(out *Output)
}

// Runner does one run after the other, or several at once, in one workspace. It is safe for
// concurrent use.
type Runner interface {
	// Run does one run, from its begin to landed or discarded: when it returns nothing of the run is
	// left. A refusal or an error is a Result too; err is only for bugs. If ctx ends, the run is
	// killed and discarded.
	//
	// progress takes the last line of the output; it may be called at every write, does not block,
	// and may be nil.
	Run(ctx context.Context, r Request, progress func(line string)) (Result, error)

	// Permit says, for the model, what of a call the policy in force forbids although the tools that
	// the client was shown allow it: they are those of the user's own settings until the workspace,
	// and with it the project's policy, is known. nil is nothing.
	Permit(r Request) error

	// Environments gives the environments of the conversation, for the package tools. Its error says, for
	// the model, why there are none.
	Environments(ctx context.Context) (*envs.Conversation, error)

	// Close releases what the Runner keeps between runs. No run may be going on.
	Close() error

	// Describe says what runs may do under the policy in force, for a model to read: what
	// [Policy.Describe] gives. Where it is not what the tools' descriptions said, because the policy
	// was known only when the workspace was, the first result tells it.
	Describe() string
}

// Opener opens the Runner of a workspace once it is known, at the first call. roots are the URIs
// of the client's roots, whatever their scheme, nil if the client has none or was not asked. The
// text of its error is shown to the model as a refusal, so it holds cause and mend; the next call
// tries again. ctx is the run's and ends with it.
type Opener func(ctx context.Context, roots []string) (Runner, error)
