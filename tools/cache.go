package tools

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"airlock/sandbox"
)

// refuseCache notes that the kernel does not take the cache below an overlay. It reports whether that is news.
func (w *WorkspaceRunner) refuseCache(err error) bool {
	e := new(sandbox.SetupError)
	if w.cache == nil || !errors.As(err, &e) || e.Op != sandbox.OpMountOverlay || e.Path != w.cache.Files() {
		return false
	}
	return w.uncached.CompareAndSwap(nil, &e.Err)
}

// beginCache gives a run its layer of the cache, where there is one.
func (w *WorkspaceRunner) beginCache(ctx context.Context, id string, scratch *scratch) (err error) {
	scratch.discardCache() // of an attempt before
	if w.cache != nil && w.uncached.Load() == nil {
		scratch.cache, err = w.cache.Begin(ctx, id)
	}
	return err
}

// cacheMount shows a run its cache.
func (w *WorkspaceRunner) cacheMount(scratch *scratch) []sandbox.Mount {
	if scratch.cache == nil {
		return nil
	}
	m := mountOf(scratch.cache.Layer())
	m.Target = filepath.Join(w.identity.Home, ".cache")
	return []sandbox.Mount{m}
}

// watchCache bounds what a run writes into its layer of the cache, by cancel, until done is called.
func (w *WorkspaceRunner) watchCache(ctx context.Context, scratch *scratch, cancel context.CancelCauseFunc) (done func()) {
	if scratch.cache == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		watchUse(ctx, scratch.cache.Usage, func(used int64) bool {
			scratch.kept.Store(used)
			return scratch.bytes() > scratch.full
		}, cancel)
	})
	watching.Go(func() { watchFree(ctx, w.cache.Free, cancel) })
	return func() {
		stop()
		watching.Wait()
	}
}

// measureCache looks once more at the end of a run. One that is beyond limits.disk did not end well.
func (s *scratch) measureCache(ctx context.Context, result *Result) {
	if s.cache == nil || result.Status != StatusExited {
		return
	}
	used, err := s.cache.FinalUsage(ctx)
	if err != nil {
		s.discardCache()
		result.Notes = append(result.Notes, uncachedNote(err))
		return
	}
	s.kept.Store(used)
	if s.bytes() > s.full {
		result.Status, result.ExitCode, result.Limit = StatusLimit, nil, "disk"
	}
}

// endCache has the cache take what the run wrote there if the run's changes landed, or would have, had there been a
// transaction; has it wait if they do; and else throws it away. ctx ends with the call.
func (w *WorkspaceRunner) endCache(ctx context.Context, scratch *scratch, result *Result, onFailure string) {
	if err := w.uncached.Load(); err != nil {
		result.Notes = append(result.Notes, fmt.Sprintf("~/.cache is empty and does not last: the kernel does not take %s below an overlay: %v", w.cache.Files(), *err))
	}
	if scratch.cache == nil {
		return
	}
	landed := result.Workspace.Landed
	if w.policy.ReadOnly || w.policy.Through {
		landed = w.lands(*result, onFailure)
	}
	var err error
	switch {
	case result.Waiting != "":
		err = scratch.cache.Park()
	case landed:
		err = scratch.cache.Land(ctx)
	default:
		_ = scratch.cache.Discard() // what could not be removed goes with the server
	}
	scratch.cache = nil
	if err != nil && ctx.Err() == nil {
		result.Notes = append(result.Notes, uncachedNote(err))
	}
}

func uncachedNote(err error) string {
	return fmt.Sprintf("not all that the run put into ~/.cache was kept: %v", err)
}

// discardCache throws away what a run wrote there, if anything.
func (s *scratch) discardCache() {
	if s.cache != nil {
		_ = s.cache.Discard()
	}
	s.cache = nil
	s.kept.Store(0)
}
