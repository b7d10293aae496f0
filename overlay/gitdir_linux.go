package overlay

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// A git directory outside of the workspace is a Workspace of its own, with its own lock, journal, history and
// scratch: it can be the one of several workspaces, each with its server. A run's transaction has a second
// one in it, for the git directory; what both change lands together, see joint_linux.go.

// AllowGit sets the rule by which a directory outside of the workspace may be used as its git directory, beside
// those of this package: its real path is given, and the error says why it may not be. It is called before the
// first transaction begins. The command of a rule that refuses finds no repository, and the report says why.
func (w *Workspace) AllowGit(rule func(dir string) error) { w.gitRule = rule }

// beginGit begins the part of the transaction that is about a git directory outside, if there is one. Where it
// can't be used, the run goes on without.
func (t *Txn) beginGit(ctx context.Context) error {
	if t.w.isGit {
		return nil
	}
	link, err := t.w.gitLink()
	if err == nil && link != nil {
		t.git, err = t.w.beginIn(ctx, link, t.run)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		t.notes = append(t.notes, err.Error())
	}
	return nil
}

func (w *Workspace) beginIn(ctx context.Context, link *gitLink, run string) (*Txn, error) {
	bad := func(err error) error { return &gitLinkError{link.dir, withoutOp(err).Error()} }
	if w.config.LandOn == "review" {
		return nil, bad(errors.New(`it can't wait for a review as the workspace can (workspace.land_on is "review")`))
	}
	git, err := w.gitAt(link.dir)
	if err != nil {
		return nil, bad(err)
	}
	var shared *sharedGit
	if link.worktree != "" {
		shared = &sharedGit{link.worktree}
	}
	t, err := git.begin(ctx, run, shared)
	if err != nil {
		return nil, bad(err)
	}
	if link.via != link.dir {
		t.via = link.via
	}
	return t, nil
}

// withoutOp takes our own name off an error.
func withoutOp(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil || err.Error() != "overlay: "+inner.Error() {
			return err
		}
		err = inner
	}
}

// gitAt returns the git directory at a real path, opened.
func (w *Workspace) gitAt(dir string) (*Workspace, error) {
	w.gitMu.Lock()
	defer w.gitMu.Unlock()
	if git := w.gits[dir]; git != nil && git.unmoved() == nil {
		return git, nil
	}
	git, err := w.openGit(dir)
	if err != nil {
		return nil, err
	}
	if old := w.gits[dir]; old != nil {
		w.oldGits = append(w.oldGits, old) // a transaction may be open in it
	}
	if w.gits == nil {
		w.gits = map[string]*Workspace{}
	}
	w.gits[dir] = git
	return git, nil
}

// openGit opens a git directory. The person's patterns are about the workspace.
func (w *Workspace) openGit(dir string) (*Workspace, error) {
	c := w.config
	c.Ignore, c.Protect = nil, nil
	f, err := newFilter(c)
	if err != nil {
		return nil, err
	}
	return openAs(dir, filepath.Dir(filepath.Dir(w.state)), c, f, w.hook, true)
}

func (w *Workspace) closeGits() error {
	w.gitMu.Lock()
	defer w.gitMu.Unlock()
	var failed []error
	for _, git := range w.gits {
		failed = append(failed, git.Close())
	}
	for _, git := range w.oldGits {
		failed = append(failed, git.Close())
	}
	w.gits, w.oldGits = nil, nil
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("git directory: %w", err)
	}
	return nil
}
