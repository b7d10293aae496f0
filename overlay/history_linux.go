package overlay

import (
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"airlock/internal/clearing"
)

// The history of a workspace is a directory beside the layers, since things are renamed into it. An
// entry of it is the directory that a landing went through, renamed: what was replaced and removed,
// under the numbers of the steps, and the record of the landing in entryName.

// entryName is the file with the record of an entry.
const entryName = "entry"

// historyLimit bounds the number of entries, whatever they keep.
const historyLimit = 1000

// openHistory opens the directory; nil is that there is none.
func openHistory(base *tree) (*tree, error) {
	h, err := base.sub(historyName)
	if is(err, unix.ENOENT) {
		return nil, nil
	}
	return h, err
}

// makeHistory opens the directory, which it makes where it is missing.
func makeHistory(base *tree) (*tree, error) {
	h, err := openHistory(base)
	if err == nil && h == nil {
		h, err = base.mkdir(historyName, 0o700)
	}
	return h, err
}

// entries lists the history, oldest first.
func (h *tree) entries() ([]historyEntry, error) {
	names, err := h.list("")
	if err != nil {
		return nil, err
	}
	var entries []historyEntry
	for _, name := range names {
		if e, ok := parseEntry(name); ok {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// listed is the history as it was when its directory had a ctime: who has it need not read it again.
type listed struct {
	entries []historyEntry
	at      stamp
}

// listHistory is entries, but reads the directory only if someone else changed it.
func (w *Workspace) listHistory(h *tree) ([]historyEntry, error) {
	now, err := statAt(h.fd, "")
	if err != nil {
		return nil, err
	}
	if w.listed.entries == nil || w.listed.at != now.ctime {
		entries, err := h.entries()
		if err != nil {
			return nil, err
		}
		w.listed = listed{entries, now.ctime}
	}
	return w.listed.entries, nil
}

// changeHistory calls f, which makes of the listed entries what it returns, and keeps that.
func (w *Workspace) changeHistory(h *tree, f func([]historyEntry) ([]historyEntry, error)) error {
	w.historyMu.Lock()
	defer w.historyMu.Unlock()
	entries, err := w.listHistory(h)
	if err != nil {
		return err
	}
	w.listed.entries = nil
	if entries, err = f(entries); err != nil {
		return err
	}
	if now, err := statAt(h.fd, ""); err == nil {
		w.listed = listed{entries, now.ctime}
	}
	return nil
}

// trimmed reports whether the history is known to need no trimming.
func (w *Workspace) trimmed() bool {
	w.historyMu.Lock()
	defer w.historyMu.Unlock()
	var total uint64
	for _, e := range w.listed.entries {
		total += e.size
	}
	return w.listed.entries != nil && len(w.listed.entries) <= historyLimit && w.config.Undo > 0 && total <= uint64(w.config.Undo)
}

// trim holds the history to workspace.undo, and to so many entries: what the oldest keep goes first, after what
// would be too much alone, which costs no other its undo. The lock on the workspace is held.
func (w *Workspace) trim(base *tree) error {
	if w.trimmed() {
		return nil
	}
	h, err := openHistory(base)
	if h == nil {
		return err
	}
	defer h.close()
	return w.changeHistory(h, func(entries []historyEntry) ([]historyEntry, error) {
		limit := uint64(w.config.Undo)
		var total uint64
		for _, e := range entries {
			total += e.size
		}
		surplus := max(0, len(entries)-historyLimit)
		for _, e := range entries[:surplus] {
			if err := h.remove(e); err != nil {
				return nil, err
			}
			total -= e.size
		}
		entries = entries[surplus:]
		drop := func(i int) error {
			e := entries[i]
			if e.state != "" {
				return nil
			}
			total -= e.size
			entries[i] = e.as(entryDropped)
			return h.drop(e, entryDropped)
		}
		for i, e := range entries {
			if limit > 0 && e.size > limit {
				if err := drop(i); err != nil {
					return nil, err
				}
			}
		}
		for i := range entries {
			if limit > 0 && total <= limit {
				break
			}
			if err := drop(i); err != nil {
				return nil, err
			}
		}
		return entries, nil
	})
}

// drop removes what an entry keeps and leaves the record. A crash in the middle leaves an entry that
// says it keeps something; it is dropped again in its turn.
func (h *tree) drop(e historyEntry, state string) error {
	dir, err := h.sub(e.String())
	if is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.close()
	names, err := dir.list("")
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == entryName {
			continue
		}
		h.point()
		if err := clearing.Beneath(dir.fd, name); err != nil {
			return err
		}
	}
	return move(h, e.String(), h, e.as(state).String(), unix.RENAME_NOREPLACE)
}

// remove removes an entry.
func (h *tree) remove(e historyEntry) error {
	h.point()
	return clearing.Beneath(h.fd, e.String())
}

// readEntry reads the record of an entry.
func (h *tree) readEntry(e historyEntry) (record, error) {
	path := joinPath(e.String(), entryName)
	fd, err := h.open(path, unix.O_RDONLY)
	if err != nil {
		return record{}, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return record{}, err
	}
	r, err := decodeRecord(text)
	if err != nil {
		return record{}, fmt.Errorf("%s in %s: %w", e, h.path, err)
	}
	if r.Report == nil {
		return record{}, fmt.Errorf("%s in %s: %w", e, h.path, errDamaged)
	}
	return r, nil
}

// markUndone drops what an entry keeps after it was taken back.
func markUndone(base *tree, name string) error {
	h, err := openHistory(base)
	if h == nil {
		return err
	}
	defer h.close()
	entries, err := h.entries()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(entries, func(e historyEntry) bool { return e.String() == name })
	if i < 0 {
		return nil // done already
	}
	return h.drop(entries[i], entryUndone)
}
