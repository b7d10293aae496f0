package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"airlock/overlay"
)

// errDisk is the cause of the end of a run's context when its layer has grown beyond limits.disk.
var errDisk = errors.New("limits.disk")

// diskInterval is how often the layer of a run is measured. No filesystem has a quota for a directory, so
// that this is a watch, and a run can write for that long what it must not keep.
const diskInterval = 50 * time.Millisecond

// watchDisk ends ctx's run, by cancel, when its layer takes more than limit bytes, until ctx ends. A
// layer of many files takes long to measure: the watch never takes more than a tenth of a core.
func watchDisk(ctx context.Context, txn *overlay.Txn, limit int64, cancel context.CancelCauseFunc) {
	pause := diskInterval
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		start := time.Now()
		// An error says that the measure is short of something: what it did find still counts.
		if used, _ := txn.Usage(ctx); used > limit {
			cancel(errDisk)
			return
		}
		pause = max(diskInterval, 9*time.Since(start))
	}
}

// checkDisk looks once more when the run is over, so that nothing beyond the limit ever lands.
func checkDisk(result Result, txn *overlay.Txn, limit int64) Result {
	if result.Status != StatusExited {
		return result
	}
	used, err := txn.FinalUsage(context.Background())
	switch {
	case err != nil:
		result.Status, result.ExitCode = StatusError, nil
		result.Reason = fmt.Sprintf("what the run wrote could not be measured, so that nothing of it lands: %v", err)
	case used > limit:
		result.Status, result.ExitCode, result.Limit = StatusLimit, nil, "disk"
	}
	return result
}
