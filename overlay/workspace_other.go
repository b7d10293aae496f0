//go:build !linux

package overlay

import (
	"context"
	"errors"
	"fmt"
	"io"
)

var errUnsupported = fmt.Errorf("overlay: workspace transactions need Linux: %w", errors.ErrUnsupported)

// Workspace is a directory whose changes are made by transactions. There is none on this system.
type Workspace struct{}

// Open fails: transactions need overlayfs.
func Open(dir, stateDir string, c Config) (*Workspace, error) { return nil, errUnsupported }

// Hide fails.
func (w *Workspace) Hide(h Hidden) error { return errUnsupported }

// Interrupted returns nothing.
func (w *Workspace) Interrupted() []string { return nil }

// SetGitUser does nothing.
func (w *Workspace) SetGitUser(u GitUser) {}

// Begin fails.
func (w *Workspace) Begin(ctx context.Context, run string) (*Txn, error) { return nil, errUnsupported }

// View is the workspace for one run that may only read it.
type View struct{}

// View fails.
func (w *Workspace) View(ctx context.Context) (*View, error) { return nil, errUnsupported }

// Layers returns nothing.
func (v *View) Layers() []Layer { return nil }

// Hold fails.
func (w *Workspace) Hold(ctx context.Context) (Held, error) { return Held{}, errUnsupported }

// Free fails.
func (w *Workspace) Free() (int64, error) { return 0, errUnsupported }

// Close does nothing.
func (v *View) Close() error { return nil }

// RemoveBeside does nothing.
func (w *Workspace) RemoveBeside() {}

// Close does nothing.
func (w *Workspace) Close() error { return nil }

// Txn is one transaction.
type Txn struct{}

// Layer returns nothing.
func (t *Txn) Layer() Layer { return Layer{} }

// Layers returns nothing.
func (t *Txn) Layers() []Layer { return nil }

// Land fails.
func (t *Txn) Land(ctx context.Context) (Report, error) { return Report{}, errUnsupported }

// Discard fails.
func (t *Txn) Discard(reason string) (Report, error) { return Report{}, errUnsupported }

// Usage fails.
func (t *Txn) Usage(ctx context.Context) (int64, error) { return 0, errUnsupported }

// Free fails.
func (t *Txn) Free() (int64, error) { return 0, errUnsupported }

// FinalUsage fails.
func (t *Txn) FinalUsage(ctx context.Context) (int64, error) { return 0, errUnsupported }

// Describe does nothing.
func (t *Txn) Describe(what string) {}

// History fails.
func (w *Workspace) History(ctx context.Context) ([]Landing, error) { return nil, errUnsupported }

// NoteDirect fails.
func NoteDirect(ctx context.Context, dir, stateDir, run, what string) (forget func() error, err error) {
	return nil, errUnsupported
}

// Undo fails.
func (w *Workspace) Undo(ctx context.Context, run string) (Report, error) {
	return Report{}, errUnsupported
}

// Diff fails.
func (w *Workspace) Diff(ctx context.Context, run string, out io.Writer) error { return errUnsupported }

// AllowGit does nothing.
func (w *Workspace) AllowGit(rule func(dir string) error) {}

// TakeNotes returns nothing.
func (w *Workspace) TakeNotes() []string { return nil }

// Park fails.
func (t *Txn) Park(ctx context.Context) (Report, error) { return Report{}, errUnsupported }

// Waiting fails.
func (w *Workspace) Waiting(ctx context.Context) ([]Waiting, error) { return nil, errUnsupported }

// LandWaiting fails.
func (w *Workspace) LandWaiting(ctx context.Context, run string) (Report, error) {
	return Report{}, errUnsupported
}

// DiscardWaiting fails.
func (w *Workspace) DiscardWaiting(ctx context.Context, run string) (Report, error) {
	return Report{}, errUnsupported
}

// WaitingIn returns nothing.
func WaitingIn(stateDir string) ([]WaitingRuns, error) { return nil, nil }

// Clean finds nothing.
func Clean(ctx context.Context, o CleanOptions) ([]Cleaned, error) { return nil, nil }

// CleanCaches finds nothing.
func CleanCaches(ctx context.Context, o CleanOptions) ([]CleanedCache, error) { return nil, nil }

// Refuse changes nothing.
func (w *Workspace) Refuse(lower string) bool { return false }

// LimitCopies does nothing.
func (w *Workspace) LimitCopies(bytes int64) {}

// DirUsage fails.
func DirUsage(ctx context.Context, dir string, final bool) (int64, error) { return 0, errUnsupported }

// DirFree fails.
func DirFree(dir string) (int64, error) { return 0, errUnsupported }
