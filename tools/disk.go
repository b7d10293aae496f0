package tools

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"airlock/overlay"
)

// errDisk is the cause of the end of a run's context when it has written more than limits.disk.
var errDisk = errors.New("limits.disk")

// errFull is errDisk for a filesystem that has come near to its end, whatever the layer is found to hold:
// what a run holds open and has unlinked is in no directory.
var errFull = fmt.Errorf("%w: the filesystem is nearly full", errDisk)

// freeFloor is how much of the filesystem a run leaves to everyone else, in bytes. Where little more was
// left at its beginning, it leaves half of that.
const freeFloor = 1 << 30

// diskInterval is how often the layer of a run is measured. No filesystem has a quota for a directory, so
// that this is a watch, and a run can write for that long what it must not keep.
const diskInterval = 50 * time.Millisecond

// scratch is what a run has beside the layers of the workspace.
type scratch struct {
	full  int64             // bytes; the size of its private tmpfs, which is limits.disk
	held  atomic.Int64      // what that was last said to hold: /tmp, /dev/shm and the home directory
	kept  atomic.Int64      // what its layer of the cache was last measured to take
	cache *overlay.CacheTxn // nil: none
}

func (w *WorkspaceRunner) newScratch() *scratch {
	return &scratch{full: int64(w.policy.Limits.Disk)}
}

// told notes what the sandbox tells, and reports whether nothing more goes in.
func (s *scratch) told(bytes int64) (full bool) {
	s.held.Store(bytes)
	return bytes >= s.full
}

// bytes is what counts for limits.disk beside the layers of the workspace.
func (s *scratch) bytes() int64 { return s.held.Load() + s.kept.Load() }

// watchDisk ends ctx's run, by cancel, when its layer and its scratch take more than limit bytes together,
// until ctx ends.
func watchDisk(ctx context.Context, txn *overlay.Txn, scratch *scratch, limit int64, cancel context.CancelCauseFunc) {
	watchUse(ctx, txn.Usage, func(used int64) bool { return used+scratch.bytes() > limit }, cancel)
}

// watchUse measures until ctx ends, and ends its run, by cancel, when full says so. What has many files takes long to
// measure: the watch never takes more than a tenth of a core.
func watchUse(ctx context.Context, measure func(context.Context) (int64, error), full func(bytes int64) bool, cancel context.CancelCauseFunc) {
	pause := diskInterval
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		start := time.Now()
		// An error says that the measure is short of something: what it did find still counts.
		if used, _ := measure(ctx); full(used) {
			cancel(errDisk)
			return
		}
		pause = max(diskInterval, 9*time.Since(start))
	}
}

// watchFree ends ctx's run, by cancel, when the filesystem has no more than its floor of free space left,
// until ctx ends. It costs one system call each time, so that it is never late.
func watchFree(ctx context.Context, free func() (int64, error), cancel context.CancelCauseFunc) {
	atBegin, err := free()
	if err != nil {
		return // a filesystem that doesn't say
	}
	floor := min(freeFloor, atBegin/2)
	tick := time.NewTicker(diskInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now, err := free(); err == nil && now < floor {
			cancel(errFull)
			return
		}
	}
}

// checkDisk looks once more when the run is over, so that nothing beyond the limit ever lands. limit is what
// is left of it for the layer. ctx ends with the call.
func checkDisk(ctx context.Context, result Result, txn *overlay.Txn, limit int64) Result {
	if result.Status != StatusExited {
		return result
	}
	used, err := txn.FinalUsage(ctx)
	switch {
	case ctx.Err() != nil:
		return interrupted(ctx)
	case err != nil:
		result.Status, result.ExitCode = StatusError, nil
		result.Reason = fmt.Sprintf("what the run wrote could not be measured, so that nothing of it lands: %v", err)
	case used > limit:
		result.Status, result.ExitCode, result.Limit = StatusLimit, nil, "disk"
	}
	return result
}
