package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"airlock/overlay"
)

// writtenDirectly is the line of a run that had the workspace itself.
const writtenDirectly = "workspace: written directly, without a transaction"

// notHeld says what the sandbox does not keep a run from that writes to the workspace itself.
const notHeld = `workspace.mode is "direct": there is no undo and no conflict check; limits.disk does not bound what is written to the workspace, only a floor of free space does; protected and hidden paths are held as they were when the run began, not those that were made or replaced since`

// noted does a run that writes to the workspace itself, which is noted before: one that is cut off has changed the workspace too.
func (w *WorkspaceRunner) noted(ctx context.Context, id string, r Request, run func() Result) Result {
	if w.direct == nil {
		return run()
	}
	forget, err := w.direct(ctx, id, describe(r))
	result := run()
	if errors.Is(err, errors.ErrUnsupported) { // there is no history here that it could be missing in
		return result
	}
	if err == nil && !result.Workspace.Landed { // nothing ran
		err = forget()
	}
	if err != nil {
		result.Notes = append(result.Notes, fmt.Sprintf("whether this run is listed by airlock log is not known: %v", err))
	}
	return result
}

// unconfined does a run without a sandbox.
func (w *WorkspaceRunner) unconfined(ctx context.Context, id string, r Request, scratch *scratch, output io.Writer) Result {
	result, _ := w.execute(ctx, id, r, nil, scratch, output) // the error is in the result
	if result.Status != StatusRefused && result.Status != StatusError {
		result.Workspace.Landed = true
		result.WorkspaceLine = writtenDirectly
	}
	if w.backend.Unconfined() {
		result.Notes = append(result.Notes, "this run was not sandboxed (sandbox.backend is \"direct\")")
	}
	return result
}

// through does a sandboxed run that writes to the workspace itself. call ends with the call, ctx with the
// run's time too.
func (w *WorkspaceRunner) through(call, ctx context.Context, id string, r Request, scratch *scratch, output io.Writer) Result {
	held, err := w.layers.Hold(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return interrupted(ctx)
		}
		return Refused(fmt.Sprintf("the workspace can't be shown: %v", err))
	}
	running, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { watchFree(running, w.layers.Free, cancel) })
	result, err := w.executeAnyway(running, id, r, held.Layers, scratch, output)
	cancel(nil)
	watching.Wait()
	if result.Status == StatusRefused || result.Status == StatusError && err == nil {
		return result // nothing ran
	}
	result.Workspace.Landed = true
	result.WorkspaceLine = writtenDirectly
	result.Notes = append(result.Notes, notHeld)
	if len(held.Links) > 0 {
		result.Notes = append(result.Notes, "protected paths that are links can be replaced: "+quoted(held.Links))
	}
	later, err := w.layers.Hold(call)
	if err != nil {
		result.Notes = append(result.Notes, fmt.Sprintf("whether protected paths were made is not known: %v", err))
	} else if made := held.Made(later); len(made) > 0 {
		result.Notes = append(result.Notes, "made at protected paths, which other programs run or obey; look at them: "+quoted(made))
	}
	return result
}

// quoted lists paths, the first few.
func quoted(paths []string) string {
	shown := slices.Clone(paths[:min(len(paths), 10)])
	for i := range shown {
		shown[i] = overlay.Quote(shown[i])
	}
	text := strings.Join(shown, ", ")
	if more := len(paths) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
