package overlay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// History lists the landings, the newest first, and between them the runs that wrote to the workspace itself. There are at most
// a thousand landings, and a hundred of such runs.
func (w *Workspace) History(ctx context.Context) ([]Landing, error) {
	lock, err := w.lockShared(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	landings, err := w.landings()
	if err == nil {
		landings, err = w.withDirect(landings)
	}
	if err != nil {
		return nil, fmt.Errorf("overlay: history: %w", err)
	}
	return landings, nil
}

func (w *Workspace) landings() ([]Landing, error) {
	h, err := openHistory(w.scratch.base)
	if h == nil {
		return nil, err
	}
	defer h.close()
	entries, err := h.entries()
	if err != nil {
		return nil, err
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
			return nil, err
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

// findEntry opens the history and finds a run in it.
func (w *Workspace) findEntry(run string) (*tree, historyEntry, error) {
	h, err := openHistory(w.scratch.base)
	if err != nil {
		return nil, historyEntry{}, err
	}
	if h == nil {
		if err := w.direct(run, nil); err != nil {
			return nil, historyEntry{}, err
		}
		return nil, historyEntry{}, noLanding(run)
	}
	entries, err := h.entries()
	if err == nil {
		err = w.direct(run, entries)
	}
	if err == nil {
		e, found := entryOf(entries, run)
		if found {
			return h, e, nil
		}
		if err = noLanding(run); run == "" && len(entries) > 0 {
			err = notKept(entries)
		}
	}
	h.close()
	return nil, historyEntry{}, err
}

// entryOf finds the newest entry of a run; "" is the last that was not taken back. If that can't be, none is: an
// earlier one is not what is meant.
func entryOf(entries []historyEntry, run string) (historyEntry, bool) {
	for _, e := range slices.Backward(entries) {
		switch {
		case e.run == run || run == "" && e.state == "":
			return e, true
		case run == "" && e.state == entryDropped:
			return historyEntry{}, false
		}
	}
	return historyEntry{}, false
}

// notKept is the error where entryOf finds none for "".
func notKept(entries []historyEntry) error {
	for _, e := range slices.Backward(entries) {
		if e.state == entryDropped {
			return &NotKeptError{Run: e.run}
		}
	}
	return &NotKeptError{Run: entries[len(entries)-1].run, Undone: true}
}

func noLanding(run string) error {
	if run == "" {
		return ErrNoLanding
	}
	return fmt.Errorf("%w of the id %s", ErrNoLanding, Quote(strings.ToValidUTF8(run, "?")))
}
