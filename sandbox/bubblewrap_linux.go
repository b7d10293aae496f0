package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Bubblewrap is [Native] but for one thing: bubblewrap makes the namespaces. It is for hosts where bubblewrap is a
// program that may use user namespaces, and this one is not. Make one with [NewBubblewrap].
//
// Bubblewrap is given the host's whole root to show and executes init, which does the rest as it always does: it
// builds what the run sees out of that root, leaves it, and drops its rights. So nothing that a run sees, may do or
// may use differs. For that init needs the capabilities over its namespaces, which a bubblewrap that is setuid root,
// or whose AppArmor profile takes them from what it executes, does not give. Then every run is refused, with that as
// the cause: without them there would be no overlay, so no transaction, and no size for what a run writes.
type Bubblewrap struct{ isolating *Native }

// bubblewrapPaths are where bubblewrap is looked for. PATH is not asked: it can hold a directory of the
// workspace, where a run might have put a program of that name.
var bubblewrapPaths = []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

// NewBubblewrap prepares the backend. The same binary is executed again, as init. Where there is no
// bubblewrap, the error says so.
func NewBubblewrap() (*Bubblewrap, error) {
	path, err := findBubblewrap(bubblewrapPaths)
	if err != nil {
		return nil, err
	}
	return newBubblewrap(path)
}

func newBubblewrap(path string) (*Bubblewrap, error) {
	isolating, err := newIsolating(bubblewrap{path})
	if err != nil {
		return nil, err
	}
	return &Bubblewrap{isolating}, nil
}

func findBubblewrap(paths []string) (string, error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &SetupError{
		Op:   "find bubblewrap",
		Err:  fmt.Errorf("%w as %s", fs.ErrNotExist, strings.Join(paths, " or ")),
		Hint: `install it (the package is called bubblewrap), or let sandbox.backend be "auto"`,
	}
}

// Name implements [Backend].
func (*Bubblewrap) Name() string { return "bwrap" }

// Unconfined implements [Backend].
func (*Bubblewrap) Unconfined() bool { return false }

// Probe implements [Backend].
func (b *Bubblewrap) Probe(ctx context.Context) error { return b.isolating.Probe(ctx) }

// ProbeEgress is [Native.ProbeEgress].
func (b *Bubblewrap) ProbeEgress(ctx context.Context) (form EgressForm, err error) {
	return b.isolating.ProbeEgress(ctx)
}

// probeWithoutOverlay implements probed.
func (b *Bubblewrap) probeWithoutOverlay(ctx context.Context) error {
	return b.isolating.probeWithoutOverlay(ctx)
}

// Held implements [Backend].
func (b *Bubblewrap) Held() map[string]string { return b.isolating.Held() }

// StartAhead is [Native.StartAhead].
func (b *Bubblewrap) StartAhead(uid, gid int) { b.isolating.StartAhead(uid, gid) }

// Prepare is [Native.Prepare].
func (b *Bubblewrap) Prepare(spec Spec) { b.isolating.Prepare(spec) }

// Start implements [Backend].
func (b *Bubblewrap) Start(ctx context.Context, spec Spec, stdio Stdio) (Process, error) {
	return b.isolating.Start(ctx, spec, stdio)
}

// Close implements [Backend].
func (b *Bubblewrap) Close() error { return b.isolating.Close() }

// close implements namespaceMaker.
func (bubblewrap) close() error { return nil }

// explain implements namespaceMaker.
func (b bubblewrap) explain(err error) error {
	e := new(SetupError)
	if !errors.As(err, &e) || e.Hint != "" || !withoutRights(e) {
		return explain(err)
	}
	e.Err = fmt.Errorf("%s gave init no rights over its namespaces: %w", b.path, e.Err)
	e.Hint = "an AppArmor profile that takes them from what bubblewrap executes is one cause (Ubuntu's bwrap-userns-restrict); " +
		`let airlock make the namespaces itself (sandbox.backend = "native"); airlock doctor says what that needs here`
	return err
}
