package overlay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// History lists the landings, the newest first. There are at most a thousand.
func (w *Workspace) History(ctx context.Context) ([]Landing, error) {
	lock, err := w.lockShared(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	h, err := openHistory(w.scratch.base)
	if h == nil {
		return nil, err
	}
	defer h.close()
	entries, err := h.entries()
	if err != nil {
		return nil, fmt.Errorf("overlay: history: %w", err)
	}
	landings := make([]Landing, 0, len(entries))
	undoes := map[string]string{}
	for _, e := range entries {
		undoes[entryKey(e.String())] = e.run
	}
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		r, err := h.readEntry(e)
		if is(err, unix.ENOENT) {
			continue
		}
		landing := Landing{Run: e.run, Time: time.Unix(0, int64(e.time)), State: e.state, Bytes: int64(e.size)}
		switch {
		case errors.Is(err, errDamaged):
			landing.State = "damaged" // one is no reason to hide the others
		case err != nil:
			return nil, fmt.Errorf("overlay: history: %w", err)
		default:
			landing.What, landing.Report, landing.Undoes = r.What, r.Report.report(), undoes[entryKey(r.Undoes)]
		}
		if landing.State == "" {
			landing.State = "kept"
		}
		landings = append(landings, landing)
	}
	return landings, nil
}

// entryKey is the part of an entry's name that stays as it is: time and run.
func entryKey(name string) string {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '.' {
			return name[:i]
		}
	}
	return name
}
