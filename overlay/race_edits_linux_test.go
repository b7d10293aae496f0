package overlay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// heldFile is a file that an editor has open to append to it.
type heldFile struct {
	*os.File
	name string
	id   os.FileInfo
	gone bool // an editor removed it, and so what is appended
}

// edit does one thing at random.
func (r *race) edit(word string) {
	r.editing.Lock()
	defer r.editing.Unlock()
	name := raceNames[rand.IntN(len(raceNames))]
	path := fmt.Sprintf("d%d/%s", rand.IntN(raceDirs), name)
	edits := []struct {
		what string
		do   func() (string, error)
	}{
		{"in place", func() (string, error) { return r.e.inPlace(path, word) }},
		{"backdated", func() (string, error) { return r.e.backdated(path, word) }},
		{"renamed", func() (string, error) { return r.e.renamed(path, word) }},
		{"appended", func() (string, error) { return r.e.appended(path, word) }},
		{"removed", func() (string, error) { return r.e.removed(path, word) }},
		{"mapped", func() (string, error) { return r.e.mapped(path, word) }},
		{"linked", func() (string, error) { return r.e.linked(path, word) }},
		{"chmodded", func() (string, error) { return r.e.chmodded(path, word) }},
		{"opened", func() (string, error) { return "", r.hold(path, name) }},
		{"let go", func() (string, error) { return r.letGo(word) }},
		{"swapped", func() (string, error) { return r.swap() }},
	}
	edit := edits[rand.IntN(len(edits))]
	if edit.what == "swapped" && rand.IntN(8) > 0 {
		return // after one, all that runs change in these directories is in conflict
	}
	r.wrote(word, name, edit.what, false)
	start := time.Now()
	gone, err := edit.do()
	r.took(gone)
	r.happened(start, "%s %s with %s took %q: %v", edit.what, path, word, gone, err)
	switch {
	case err == nil:
		r.count(edit.what)
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist):
		r.took(word) // it was not written
	default:
		r.failed(fmt.Errorf("%s %s: %w", edit.what, path, err))
	}
	if slices.Contains([]string{"removed", "chmodded", "opened", "swapped"}, edit.what) {
		r.took(word) // nothing was written
	}
}

// dropped notes of a file that is held that an editor took it away.
func (r *race) dropped(file os.FileInfo) {
	for _, h := range r.held {
		if os.SameFile(file, h.id) {
			h.gone = true
		}
	}
}

func (r *race) hold(path, name string) error {
	f, err := os.OpenFile(r.e.path(path), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	id, err := f.Stat()
	if err == nil {
		r.held = append(r.held, &heldFile{f, name, id, false})
	}
	return err
}

// letGo appends to a held file, which in all that time nobody may have replaced, and closes it.
func (r *race) letGo(word string) (what string, err error) {
	if len(r.held) == 0 {
		return "", os.ErrNotExist
	}
	i := rand.IntN(len(r.held))
	h := r.held[i]
	r.wrote(word, h.name, "held", false)
	if h.gone {
		r.took(word)
	}
	r.held = append(r.held[:i], r.held[i+1:]...)
	_, err = h.WriteString(word + "\n")
	return "(" + h.name + ")", errors.Join(err, h.Close())
}

func (r *race) swap() (what string, err error) {
	a := rand.IntN(raceDirs)
	b := (a + 1 + rand.IntN(raceDirs-1)) % raceDirs
	return fmt.Sprintf("d%d <> d%d", a, b),
		unix.Renameat2(unix.AT_FDCWD, r.e.path(fmt.Sprint("d", a)), unix.AT_FDCWD, r.e.path(fmt.Sprint("d", b)), unix.RENAME_EXCHANGE)
}
