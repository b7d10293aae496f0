package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"airlock/internal/filelock"
)

// A run that writes to the workspace itself leaves nothing that it could be taken back by, and must not be passed over either: who
// takes the last run back means that one, not an earlier one that landed. So such runs are noted in the state directory.
const directName = "direct"

// directLimit is how many are known.
const directLimit = 100

// recordedDirect is such a run.
type recordedDirect struct {
	Run  string    `json:"run"`
	Time time.Time `json:"time"` // when it began
	What string    `json:"what,omitempty"`
}

// NoteDirect notes that a run begins which writes to the workspace at dir, a real path, itself. forget takes the note back, for
// one that did not begin after all. See [Txn.Describe] for what.
func NoteDirect(ctx context.Context, dir, stateDir, run, what string) (forget func() error, err error) {
	owner, err := statAt(unix.AT_FDCWD, dir)
	if err != nil {
		return nil, err
	}
	mode, _ := scratchMode(owner)
	state := filepath.Join(stateDir, "workspaces", workspaceID(dir))
	if err := os.MkdirAll(state, os.FileMode(mode)); err != nil {
		return nil, err
	}
	err = changeDirect(ctx, dir, state, func(all []recordedDirect) []recordedDirect {
		return append(all[max(0, len(all)-directLimit+1):], recordedDirect{run, time.Now().UTC(), shortened(what)})
	})
	if err != nil {
		return nil, fmt.Errorf("overlay: note a run: %w", err)
	}
	return func() error {
		// That the run did not begin may be since ctx ended.
		return changeDirect(context.WithoutCancel(ctx), dir, state, func(all []recordedDirect) []recordedDirect {
			return slices.DeleteFunc(all, func(d recordedDirect) bool { return d.Run == run })
		})
	}, nil
}

// changeDirect makes of the noted runs of the workspace at dir what f returns.
func changeDirect(ctx context.Context, dir, state string, f func([]recordedDirect) []recordedDirect) error {
	lock, err := filelock.Wait(ctx, filepath.Join(state, "lock"), filelock.Alone)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	all, err := readDirect(state)
	if err != nil {
		return err
	}
	own, err := openTree(state)
	if err != nil {
		return err
	}
	defer own.close()
	replace := func(name string, document any) error {
		text, err := json.Marshal(document)
		if err != nil {
			return err
		}
		return own.replace(name, text, false)
	}
	if _, err := os.Lstat(filepath.Join(state, placeName)); errors.Is(err, fs.ErrNotExist) {
		// No transaction was begun there yet, and [Clean] asks which workspace it is, to see whether that is gone.
		if err := replace(placeName, recordedPlace{Workspace: rawPath(dir)}); err != nil {
			return err
		}
	}
	return replace(directName, f(all))
}

// readDirect reads the noted runs, the oldest first. A document that can't be understood says nothing, and is replaced.
func readDirect(state string) (all []recordedDirect, err error) {
	text, err := os.ReadFile(filepath.Join(state, directName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(text, &all) != nil {
		return nil, nil
	}
	// An id is shown as it is.
	return slices.DeleteFunc(all, func(d recordedDirect) bool { return !isRunID(d.Run) }), nil
}

// direct is the error of a run that is looked for in the history, and wrote to the workspace itself: it is named, or "" and the
// last one, after all that can be meant by that.
func (w *Workspace) direct(run string, entries []historyEntry) error {
	all, err := readDirect(w.state)
	if err != nil || len(all) == 0 {
		return err
	}
	one := all[len(all)-1]
	if run != "" {
		i := slices.IndexFunc(all, func(d recordedDirect) bool { return d.Run == run })
		if i < 0 {
			return nil
		}
		one = all[i]
	} else {
		for _, e := range entries {
			if e.state != entryUndone && int64(e.time) > one.Time.UnixNano() {
				return nil
			}
		}
	}
	return &DirectError{Run: one.Run, What: one.What, Named: run != ""}
}

// withDirect adds the noted runs to landings, the newest first.
func (w *Workspace) withDirect(landings []Landing) ([]Landing, error) {
	all, err := readDirect(w.state)
	for _, d := range all {
		landings = append(landings, Landing{Run: d.Run, Time: d.Time, What: d.What, State: stateDirect})
	}
	slices.SortStableFunc(landings, func(a, b Landing) int { return b.Time.Compare(a.Time) })
	return landings, err
}

// shortened is what a run did as the history has it.
func shortened(what string) string {
	return strings.ToValidUTF8(what[:min(len(what), 1024)], "\uFFFD")
}
