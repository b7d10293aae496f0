package overlay

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// View is the workspace for one run that may only read it. It ends with Close.
type View struct {
	w    *Workspace
	mask *mask
	git  *gitLink // the git directory outside, if there is one
}

// openViews makes the place for masks where nothing ever lands from: in the state directory, whatever
// filesystem that is on, so that nothing is made in or beside a workspace that is only read.
func (w *Workspace) openViews(doubt bool) (*scratch, error) {
	s := &scratch{base: &tree{path: filepath.Join(w.state, "layers")}, doubt: doubt}
	var foreign bool
	s.mode, foreign = scratchMode(w.id)
	if w.config.Mode == "direct" { // no run sees anything of it
		return s, s.open(context.Background(), w.root, w.id, false, func(_, _ *tree) error { return nil })
	}
	if err := s.open(context.Background(), w.root, w.id, foreign, holdsLayers); err != nil {
		return s, fmt.Errorf("no place for what hides paths from runs: %w (XDG_STATE_HOME can name another)", err)
	}
	return s, nil
}

// View shows the workspace as it is now and becomes, without what is hidden. Unlike a transaction it
// needs no place to write; a workspace of mode "readonly" has nothing else.
func (w *Workspace) View(ctx context.Context) (*View, error) {
	if err := w.unmoved(); err != nil {
		return nil, err
	}
	// After the landing that goes on now, if any.
	lock, err := w.lockShared(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	v := &View{w: w}
	v.git, _ = w.gitLink() // git says well enough that there is none
	v.mask, _, err = w.masks.take(passed(), w.scratch.server)
	return v, err
}

// passed is a moment that has passed by the clock of any filesystem of this host, however coarse: FAT's
// has steps of two seconds.
func passed() stamp {
	t := time.Now().Add(-3 * time.Second)
	return stamp{t.Unix(), uint32(t.Nanosecond())}
}

// Layers returns what has to be mounted. There is no upper layer: it is to be read-only.
func (v *View) Layers() []Layer {
	layers := []Layer{{Lower: v.w.root.path, Mask: v.mask.path()}}
	if v.git != nil {
		layers = append(layers, Layer{Lower: v.git.dir, Via: v.git.via})
	}
	return layers
}

// Close is called once nothing is mounted any more.
func (v *View) Close() error { return v.w.masks.release(v.mask) }

var errReadOnly = errors.New("overlay: the workspace is read-only (workspace.mode)")
