package tools

import (
	"context"
	"errors"
	"testing"
)

// TestWatchFree: a run is ended when the filesystem has come to its floor, and not before.
func TestWatchFree(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reads []int64 // the last one stays
		ends  bool
	}{
		{"enough is left", []int64{10 << 30, 2 << 30, freeFloor}, false},
		{"nearly full", []int64{10 << 30, 2 << 30, freeFloor - 1}, true},
		{"there was little from the beginning", []int64{100, 60, 50}, false},
		{"half of little is gone", []int64{100, 60, 49}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithTimeout(context.Background(), 20*diskInterval)
			defer stop()
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			reads := tt.reads
			watchFree(ctx, func() (int64, error) {
				now := reads[0]
				if len(reads) > 1 {
					reads = reads[1:]
				}
				return now, nil
			}, cancel)
			if ended := errors.Is(context.Cause(ctx), errFull); ended != tt.ends {
				t.Errorf("ended: %v", ended)
			}
			result := interrupted(ctx)
			if tt.ends && (result.Limit != "disk" || len(result.Notes) != 1) {
				t.Errorf("result: %+v", result)
			}
		})
	}
}
