package overlay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"airlock/internal/clearing"
	"airlock/internal/filelock"
)

// cleanWait is how long Clean waits for a landing that goes on.
const cleanWait = 10 * time.Second

// Clean removes what is kept of workspaces and nothing that goes on needs: not the layers of servers that
// live, not runs that wait for review, not what is left of a landing that could not be taken back. Landings
// of other processes wait for it, and it for theirs. The error is about those workspaces that are not in
// the answer.
func Clean(ctx context.Context, o CleanOptions) ([]Cleaned, error) {
	states := []string{filepath.Join(o.StateDir, "workspaces", workspaceID(o.Workspace))}
	if o.Workspace == "" {
		var err error
		if states, err = filepath.Glob(filepath.Join(o.StateDir, "workspaces", "*")); err != nil {
			return nil, err
		}
	}
	var all []Cleaned
	var failed []error
	for _, state := range states {
		own, err := openTree(state)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			c := cleaning{CleanOptions: o, own: own, done: Cleaned{Workspace: o.Workspace}}
			err = c.run(ctx)
			own.close()
			all = append(all, c.done)
			if o.Workspace != "" { // else they have their turn
				done, halvesErr := c.cleanHalves(ctx)
				all, err = append(all, done...), errors.Join(err, halvesErr)
			}
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return all, errors.Join(failed...)
}

// workspaceID is what the state directory calls a workspace, by its real path.
func workspaceID(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:8])
}

// cleaning is that of one workspace.
type cleaning struct {
	CleanOptions
	own  *tree // its part of the state directory
	done Cleaned

	halves []recordedWith // of the landings that were dropped, those in a git directory elsewhere
	only   []recordedWith // if not nil: nothing but these
}

// cleanHalves drops what git directories elsewhere keep of landings that were one with those that were dropped: nothing
// can take back a half of one.
func (c *cleaning) cleanHalves(ctx context.Context) (all []Cleaned, err error) {
	byDir := map[string][]recordedWith{}
	for _, half := range c.halves {
		byDir[string(half.Dir)] = append(byDir[string(half.Dir)], half)
	}
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		own, openErr := openTree(filepath.Join(c.StateDir, "workspaces", workspaceID(dir)))
		if errors.Is(openErr, fs.ErrNotExist) {
			continue
		}
		if openErr != nil {
			err = errors.Join(err, openErr)
			continue
		}
		git := cleaning{CleanOptions: c.CleanOptions, own: own, done: Cleaned{Workspace: dir}, only: byDir[dir]}
		git.Workspace, git.Scratch = dir, false
		err = errors.Join(err, git.run(ctx))
		own.close()
		if git.done.Waiting = 0; git.done.Runs > 0 || git.done.Kept != "" {
			all = append(all, git.done)
		}
	}
	return all, err
}

func (c *cleaning) run(ctx context.Context) error {
	place, err := readPlace(c.own.path)
	if err != nil {
		return err
	}
	if c.done.Workspace == "" {
		c.done.Workspace = string(place.Workspace)
	}
	if c.done.Workspace != "" {
		i, err := statAt(unix.AT_FDCWD, c.done.Workspace)
		if err != nil {
			return err
		}
		c.done.Gone = i.kind != directory
	}
	waiting, cancel := context.WithTimeoutCause(ctx, cleanWait, errLandingGoesOn)
	defer cancel()
	lock, err := filelock.Wait(waiting, filepath.Join(c.own.path, "lock"), filelock.Alone)
	if errors.Is(err, errLandingGoesOn) {
		c.done.Kept = errLandingGoesOn.Error()
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	names, err := c.own.list("")
	if err != nil {
		return err
	}
	if slices.Contains(names, journalName) {
		c.done.Kept = "a landing was cut off there, and is taken back first when airlock is used in it again"
		return nil
	}
	// A journal that could not be read can be about anything that a dead server left.
	c.Scratch = c.Scratch && !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, interruptedPrefix) })
	for _, path := range c.places(string(place.Layers)) {
		if err := c.place(ctx, path); err != nil {
			return err
		}
	}
	// Runs that wrote to the workspace itself are listed among the landings, and go when these do.
	if c.done.Gone && c.History && !c.DryRun {
		if err := os.Remove(filepath.Join(c.own.path, directName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

var errLandingGoesOn = errors.New("a landing goes on there")

// readPlace reads where the layers of a workspace are; nothing if that was never written down.
func readPlace(state string) (p recordedPlace, err error) {
	text, err := os.ReadFile(filepath.Join(state, placeName))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	return p, err
}

// places are the directories that can have been the place of layers.
func (c *cleaning) places(recorded string) []string {
	places := []string{filepath.Join(c.own.path, "layers"), shmPlace(filepath.Base(c.own.path))}
	if c.done.Workspace != "" {
		places = append(places, besidePlace(c.done.Workspace), filepath.Join(c.done.Workspace, insideName))
	}
	if recorded != "" && !slices.Contains(places, recorded) {
		places = append(places, recorded)
	}
	return places
}

// place cleans one of them.
func (c *cleaning) place(ctx context.Context, path string) error {
	base, err := openTree(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if errors.Is(err, fs.ErrPermission) {
		if i, statErr := statAt(unix.AT_FDCWD, path); statErr == nil && i.kind == directory && c.foreign(path, i) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	defer base.close()
	i, err := statAt(base.fd, "")
	if err != nil {
		return err
	}
	s := &scratch{base: base}
	if s.ours() != nil || c.foreign(path, i) {
		return nil // not airlock's, of the same name, or another user's
	}
	runs, err := waitingRuns(base)
	if err != nil {
		return err
	}
	c.done.Waiting += len(runs)
	if c.Scratch {
		if err := c.servers(ctx, base); err != nil {
			return err
		}
	}
	if c.History {
		if err := c.history(ctx, base); err != nil {
			return err
		}
	}
	if !c.DryRun && base.path != filepath.Join(c.own.path, "layers") {
		return c.vacate(ctx, base)
	}
	return nil
}

// foreign reports whether a place is another user's, and notes it.
func (c *cleaning) foreign(path string, i inode) bool {
	if i.uid == uint32(os.Geteuid()) {
		return false
	}
	c.done.Foreign = append(c.done.Foreign, Foreign{Path: path, Owner: int(i.uid)})
	return true
}

// vacate removes a place that holds nothing any more, as that of a workspace that is gone, or of a killed server.
func (c *cleaning) vacate(ctx context.Context, base *tree) error {
	lock, err := filelock.Wait(ctx, filepath.Join(base.path, "lock"), filelock.Alone)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return vacate(base)
}

// servers removes the directories of servers that are gone.
func (c *cleaning) servers(ctx context.Context, base *tree) error {
	lock, err := filelock.Wait(ctx, filepath.Join(base.path, "lock"), filelock.Alone)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return deadServers(base, func(server *tree, name string) error {
		bytes, err := treeUsage(ctx, server)
		if err == nil && !c.DryRun {
			err = clearing.Beneath(base.fd, name)
		}
		c.done.Servers, c.done.Scratch = c.done.Servers+1, c.done.Scratch+bytes
		return err
	})
}

func (c *cleaning) wants(e historyEntry) bool {
	return c.only == nil || slices.ContainsFunc(c.only, func(half recordedWith) bool { return entryKey(half.Entry) == entryKey(e.String()) })
}

// history drops what the entries keep; of a workspace that is gone, the entries.
func (c *cleaning) history(ctx context.Context, base *tree) error {
	h, err := openHistory(base)
	if h == nil {
		return err
	}
	defer h.close()
	entries, err := h.entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.state != "" && !c.done.Gone || !c.wants(e) {
			continue
		}
		if r, err := h.readEntry(e); err == nil && r.With != nil && e.state == "" {
			c.halves = append(c.halves, *r.With)
		}
		dir, err := h.sub(e.String())
		if err != nil {
			return err
		}
		bytes, err := treeUsage(ctx, dir)
		dir.close()
		if err != nil {
			return err
		}
		switch {
		case c.DryRun:
		case c.done.Gone:
			err = h.remove(e)
		default:
			err = h.drop(e, entryDropped)
		}
		if err != nil {
			return err
		}
		c.done.History += bytes
		if e.state == "" {
			c.done.Runs++
		}
	}
	return nil
}

// treeUsage is what the content of a directory takes on disk, without what its modes hide.
func treeUsage(ctx context.Context, t *tree) (int64, error) {
	u := usage{tree: t.trailing(), seen: map[uint64]bool{}}
	defer u.tree.release()
	err := u.dir(ctx, "")
	return u.bytes, err
}
