package tools

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"airlock/internal/lull"
	"airlock/overlay"
	"airlock/proxy"
	"airlock/sandbox"
)

// WorkspaceRunner is the [Runner] of one workspace: it brings a transaction and a sandbox together
// for each run.
//
//	begin -> start -> stream output -> the namespace is empty -> land or discard -> result
//
// A run that ended in any other way than by its own exit never lands, and the transaction is over
// when Run returns, whatever happened.
type WorkspaceRunner struct {
	backend  sandbox.Backend
	layers   *overlay.Workspace // nil: runs are not sandboxed
	view     View
	policy   Policy
	tools    Config
	identity Identity
	network  func() (*proxy.Gateway, error)
	cache    *overlay.Cache        // nil: none
	uncached atomic.Pointer[error] // why the kernel does not take the cache, once that is known
	packages packages
	direct   func(ctx context.Context, run, what string) (forget func() error, err error) // nil: no run is noted

	ports     sandbox.Egress // of runs with a network
	ahead     atomic.Bool    // Prepare was called
	preparing sync.WaitGroup
	down      *teardown
	turns     outputTurns
}

// Identity is the user as whom runs are executed, on the host too.
type Identity struct {
	UID, GID int
	Home     string // the run's home directory, an empty one
}

// RunnerOptions is what a [WorkspaceRunner] is made of. The runner owns Backend and Layers from then
// on, and closes them.
type RunnerOptions struct {
	Backend  sandbox.Backend
	Layers   *overlay.Workspace // nil with sandbox.backend = "direct"
	View     View
	Policy   Policy
	Tools    Config
	Identity Identity
	// Network gives the gateway that a run which starts now goes out by; nil if its network is closed. With
	// an error it is closed too, and the result says why. A nil Network is closed.
	Network func() (*proxy.Gateway, error)
	// Cache is what runs have as ~/.cache; nil for an empty one each time. The runner closes it.
	Cache *overlay.Cache
	// Direct notes that a run begins which writes to the workspace itself, so that the history has it; forget takes the note of one
	// back that did not begin after all. nil notes none.
	Direct func(ctx context.Context, run, what string) (forget func() error, err error)
	// Packages is what the package tools need; without its Begin there are none.
	Packages PackageOptions
}

// NewRunner makes the runner of a workspace.
func NewRunner(o RunnerOptions) *WorkspaceRunner {
	if o.Layers != nil {
		o.Layers.LimitCopies(int64(o.Policy.Limits.Disk))
	}
	return &WorkspaceRunner{backend: o.Backend, layers: o.Layers, view: o.View, policy: o.Policy, tools: o.Tools, identity: o.Identity, network: o.Network, cache: o.Cache, direct: o.Direct, packages: packages{options: o.Packages}, ports: choosePorts(), down: newTeardown()}
}

// Permit implements [Runner].
func (w *WorkspaceRunner) Permit(r Request) error {
	if w.tools.disables(r.Tool) {
		return fmt.Errorf("%s is disabled in this workspace (tools.disable)", r.Tool)
	}
	if most := w.policy.Limits.MaxTimeout.Std(); r.Timeout > most {
		return fmt.Errorf("timeout_seconds: %d is out of range; this workspace takes a whole number from 1 to %d (limits.max_timeout)",
			int64(r.Timeout/time.Second), int64(most/time.Second))
	}
	return w.permitProgram(r)
}

// Notes are the policy's: what this host cannot hold, a sentence each.
func (w *WorkspaceRunner) Notes() []string { return w.policy.Notes }

// Describe implements [Runner].
func (w *WorkspaceRunner) Describe() string { return w.policy.Describe() }

// Close implements [Runner]: it discards what is left of transactions and takes the backend down.
func (w *WorkspaceRunner) Close() error {
	w.preparing.Wait()
	err := errors.Join(w.down.wait(), w.packages.close())
	if w.layers != nil {
		err = errors.Join(err, w.layers.Close())
	}
	if w.cache != nil {
		err = errors.Join(err, w.cache.Close())
	}
	return errors.Join(err, w.backend.Close())
}

// errTimeout is the cause of the end of a run's context when its own time is over.
var errTimeout = errors.New("timeout")

// Run implements [Runner].
func (w *WorkspaceRunner) Run(ctx context.Context, r Request, progress func(line string)) (Result, error) {
	start := time.Now()
	timeout := r.Timeout
	if timeout == 0 {
		timeout = w.policy.Limits.Timeout.Std()
	}
	running, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()

	id := r.ID
	if id == "" {
		id = NewRunID()
	}
	out := NewOutput(w.policy.Limits.Output)
	if r.Printing != nil {
		r.Printing(out)
	}
	result, err := w.transact(ctx, running, id, r, w.output(out, r.Tee, progress))
	if note := w.policy.Limits.bound(result, timeout); note != "" {
		result.Notes = append(result.Notes, note)
	}
	result.RunID = id
	result.Output, result.OutputDroppedBytes = out.Snapshot()
	result.DurationMS = time.Since(start).Milliseconds()
	return result, err
}

// output sends what a run prints where it belongs.
func (w *WorkspaceRunner) output(out *Output, tee io.Writer, progress func(line string)) io.Writer {
	return outputFunc(func(p []byte) (n int, err error) {
		w.turns.do(func() { n, err = out.Write(p) })
		if tee != nil {
			// A person's terminal that is gone does not end the run: the result still says what it did.
			_, _ = tee.Write(p)
		}
		if progress != nil {
			progress(out.LastLine())
		}
		return n, err
	})
}

type outputFunc func(p []byte) (int, error)

func (f outputFunc) Write(p []byte) (int, error) { return f(p) }

// transact does the run within its transaction, and lands or discards what it has of the cache. call ends with the call,
// ctx with the run's time too.
func (w *WorkspaceRunner) transact(call, ctx context.Context, id string, r Request, output io.Writer) (Result, error) {
	scratch := w.newScratch()
	result, err := w.inMode(call, ctx, id, r, scratch, output)
	w.endCache(call, scratch, &result, r.OnFailure)
	return result, err
}

// inMode does the run as workspace.mode says.
func (w *WorkspaceRunner) inMode(call, ctx context.Context, id string, r Request, scratch *scratch, output io.Writer) (Result, error) {
	if w.layers == nil {
		return w.noted(ctx, id, r, func() Result { return w.unconfined(ctx, id, r, scratch, output) }), nil
	}
	if w.policy.ReadOnly {
		return w.look(ctx, id, r, scratch, output), nil
	}
	if w.policy.Through {
		return w.noted(ctx, id, r, func() Result { return w.through(call, ctx, id, r, scratch, output) }), nil
	}
	txn, result, err := w.attempt(call, ctx, id, r, scratch, output)
	if err != nil {
		if ctx.Err() != nil {
			return interrupted(ctx), nil
		}
		return Refused(fmt.Sprintf("the transaction could not begin: %v", err)), nil
	}
	if cause := context.Cause(ctx); result.Status == StatusExited && cause != nil && !errors.Is(cause, errTimeout) {
		// Cancelled after its end, before its landing: nobody waits for what it did. (A run that ended in
		// its time is not punished for the time that we take.)
		result = interrupted(ctx)
	}
	report, err := w.finish(call, txn, result, r.OnFailure)
	if err != nil && call.Err() != nil && errors.Is(err, context.Cause(call)) {
		result = interrupted(call) // before the first change
		report.Reason = discardReason(result)
		return withReport(result, report), nil
	}
	if err != nil {
		return landingFailed(result, err), nil
	}
	return withReport(result, report), nil
}

// look does a run that may only read the workspace.
func (w *WorkspaceRunner) look(ctx context.Context, id string, r Request, scratch *scratch, output io.Writer) Result {
	view, err := w.layers.View(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return interrupted(ctx)
		}
		return Refused(fmt.Sprintf("the workspace can't be shown: %v", err))
	}
	result, _ := w.executeAnyway(ctx, id, r, view.Layers(), scratch, output) // the error is in the result
	result.WorkspaceLine = "workspace: read-only, nothing lands"
	if err := view.Close(); err != nil {
		result.Notes = append(result.Notes, fmt.Sprintf("what hid paths from the run could not be removed: %v", err))
	}
	return result
}

// attempt begins a transaction and does the run on it. Where the kernel turns out not to take something as
// an overlay's lower layer, which it says before anything ran, it is done in another way.
func (w *WorkspaceRunner) attempt(call, ctx context.Context, id string, r Request, scratch *scratch, output io.Writer) (*overlay.Txn, Result, error) {
	for {
		txn, err := w.layers.Begin(ctx, id)
		if err != nil {
			return nil, Result{}, err
		}
		txn.Describe(describe(r))
		result, again := w.watched(call, ctx, id, r, txn, scratch, output)
		if ctx.Err() != nil || !again {
			return txn, result, nil
		}
		if _, err := txn.Discard("another way"); err != nil {
			return nil, Result{}, err
		}
	}
}

// watched does the run on the layers of a transaction, and bounds what it writes there. again says
// that the kernel did not take a lower layer, which kept the run from starting, and that another transaction goes about
// it in another way.
func (w *WorkspaceRunner) watched(call, ctx context.Context, id string, r Request, txn *overlay.Txn, scratch *scratch, output io.Writer) (result Result, again bool) {
	limit := int64(w.policy.Limits.Disk)
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { watchDisk(ctx, txn, scratch, limit, cancel) })
	watching.Go(func() { watchFree(ctx, txn.Free, cancel) })
	result, err := w.execute(ctx, id, r, txn.Layers(), scratch, output)
	cancel(nil)
	watching.Wait()
	again = w.refuseCache(err)
	if e := new(sandbox.SetupError); !again && errors.As(err, &e) && e.Op == sandbox.OpMountOverlay {
		again = w.layers.Refuse(e.Path)
	}
	return checkDisk(call, result, txn, limit-scratch.bytes()), again
}

// executeAnyway is execute for a run that is in no transaction: where the kernel does not take the cache, it goes without.
func (w *WorkspaceRunner) executeAnyway(ctx context.Context, id string, r Request, layers []overlay.Layer, scratch *scratch, output io.Writer) (Result, error) {
	result, err := w.execute(ctx, id, r, layers, scratch, output)
	if w.refuseCache(err) && ctx.Err() == nil {
		return w.execute(ctx, id, r, layers, scratch, output)
	}
	return result, err
}

// execute starts the run and waits for its end. What it returns says nothing of the workspace yet. The
// error is what the sandbox said, and is in the result already.
func (w *WorkspaceRunner) execute(ctx context.Context, id string, r Request, layers []overlay.Layer, scratch *scratch, output io.Writer) (result Result, err error) {
	env, unused, err := w.surround(ctx, r)
	if err != nil {
		return Failed(err.Error()), nil
	}
	defer env.release()
	if err := w.beginCache(ctx, id, scratch); err != nil {
		return Failed(err.Error()), nil
	}
	spec, note, err := w.compose(id, r, layers, env, w.cacheMount(scratch))
	if err != nil {
		return Failed(err.Error()), nil
	}
	defer func() {
		for _, note := range append(w.down.notes(), note, unused) {
			if note != "" {
				result.Notes = append(result.Notes, note)
			}
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stdio := sandbox.Stdio{Output: output, Scratch: func(bytes int64) {
		if scratch.told(bytes) {
			cancel(errDisk)
		}
	}}
	way, why := w.egress()
	if why != "" {
		defer func() { result.Notes = append(result.Notes, why) }()
	} else if way != nil {
		way.attachTo(&spec)
		stdio.Attach = way.attach
		defer func() { way.close(&result) }()
	}
	if r.Stdin != "" {
		stdio.Stdin = strings.NewReader(r.Stdin)
	}
	done := w.watchCache(ctx, scratch, cancel)
	end := lull.Begin()
	process, err := w.backend.Start(ctx, spec, stdio)
	var exit sandbox.Exit
	if err == nil {
		exit, err = process.Ended()
	}
	end()
	if process != nil {
		w.down.begin(process)
		w.prepareAfter(spec, env, way)
	}
	done()
	switch {
	case ctx.Err() != nil && (err != nil || exit.Killed), errors.Is(context.Cause(ctx), errDisk) && !exit.LimitEnded:
		result = interrupted(ctx)
		result.EndedProcesses = exit.Ended
		return result, nil
	case err != nil:
		return startFailed(err, r), err
	}
	result = ended(exit)
	if exit.Unrouted && way == nil && why == "" {
		result.Notes = append(result.Notes, networkClosed)
	}
	scratch.measureCache(context.WithoutCancel(ctx), &result)
	if exit.LimitEnded && w.backend.Held()[exit.Limit] == sandbox.Watched {
		result.Notes = append(result.Notes, fmt.Sprintf("limits.%s is watched on this host and not held: the run had a little more before it was ended", exit.Limit))
	}
	return result, nil
}

// finish lands, leaves for review or discards, by how the run ended. The end of the call ends a landing that still looks at
// what there is to land, and never one that has begun to change the workspace: all or nothing.
func (w *WorkspaceRunner) finish(call context.Context, txn *overlay.Txn, result Result, onFailure string) (overlay.Report, error) {
	if w.lands(result, onFailure) {
		if w.policy.LandOn == "review" {
			return txn.Park(call)
		}
		return txn.Land(call)
	}
	return txn.Discard(discardReason(result))
}

// lands decides whether a run's changes are promoted, at once or once they are reviewed: only after its own exit, and with a status other
// than 0 only if the call, or else the policy, says so.
func (w *WorkspaceRunner) lands(result Result, onFailure string) bool {
	if result.Status != StatusExited || result.ExitCode == nil {
		return false
	}
	switch {
	case *result.ExitCode == 0 || onFailure == "keep":
		return true
	case onFailure == "discard":
		return false
	}
	return w.policy.LandOn == "exit"
}

// describe says what a call runs, for the history of the workspace.
func describe(r Request) string {
	switch {
	case r.Command != "":
		return r.Tool + ": " + r.Command
	case r.File != "":
		return r.Tool + ": " + r.File
	case r.Code != "":
		return r.Tool + ": " + r.Code
	}
	return r.Tool
}

// NewRunID makes the name of a new run: eight hexadecimal digits.
func NewRunID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
