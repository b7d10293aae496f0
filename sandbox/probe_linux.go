package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Probe implements [Backend]. The sandbox it builds has all that a run's has: the host's system, a
// workspace on an overlay (in the directory for temporary files), a new /proc. What it executes does
// nothing, and need not even exist on this host.
func (n *Native) Probe(ctx context.Context) error {
	return n.probe(ctx, func(*Spec, *Stdio) {})
}

// ProbeEgress builds a sandbox whose network is [NetworkRedirected], without an overlay, and says how its connections are
// taken.
func (n *Native) ProbeEgress(ctx context.Context) (form EgressForm, err error) {
	err = n.probe(ctx, func(spec *Spec, stdio *Stdio) {
		bindWorkspace(spec)
		spec.Network, spec.Egress = NetworkRedirected, Egress{RedirectPort: 61000, ProxyPort: 61001}
		stdio.Attach = func(s Sockets) error {
			form = s.form()
			return s.Close()
		}
	})
	return form, err
}

// probeWithoutOverlay implements probed.
func (n *Native) probeWithoutOverlay(ctx context.Context) error {
	return n.probe(ctx, func(spec *Spec, _ *Stdio) { bindWorkspace(spec) })
}

// bindWorkspace has the workspace of a probe, its last mount, bound.
func bindWorkspace(spec *Spec) {
	last := &spec.Mounts[len(spec.Mounts)-1]
	*last = Mount{Kind: MountBind, Source: last.Source, Target: last.Target, Writable: true}
}

func (n *Native) probe(ctx context.Context, edit func(*Spec, *Stdio)) error {
	uid, gid := os.Geteuid(), os.Getegid()
	n.StartAhead(uid, gid) // beside what follows
	system, err := HostSystem(os.Environ(), uid, gid)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "airlock-probe-")
	if err != nil {
		return setupError("make", os.TempDir(), err)
	}
	defer removeLayer(dir)
	real, links, err := FollowLinks(dir)
	if err != nil {
		return setupError("resolve", dir, err)
	}
	overlay := Mount{
		Kind: MountOverlay, Target: real, Source: filepath.Join(real, "lower"),
		Upper: filepath.Join(real, "upper"), Work: filepath.Join(real, "work"),
	}
	for _, d := range []string{overlay.Source, overlay.Upper, overlay.Work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return setupError("make", d, err)
		}
	}
	spec, stdio := Spec{
		ID:      "probe",
		Argv:    []string{"true"},
		Env:     []string{"PATH=/usr/bin:/bin"},
		Dir:     real,
		Home:    system.Account.Home,
		UID:     uid,
		GID:     gid,
		Mounts:  append(append(system.Mounts, links...), overlay),
		Network: NetworkNone,
	}, Stdio{}
	edit(&spec, &stdio)
	p, err := n.Start(ctx, spec, stdio)
	if err != nil {
		return err
	}
	exit, err := p.Wait()
	switch {
	case err != nil:
		return &SetupError{Op: "run a program in a sandbox", Err: err}
	case exit.Killed:
		return &SetupError{Op: "run a program in a sandbox", Err: fmt.Errorf("it did not end in time: %w", context.Cause(ctx))}
	case exit.StartError == "" && (exit.Code != 0 || exit.Signal != ""):
		return &SetupError{Op: "run a program in a sandbox", Err: errors.New("true ended with " + describeExit(exit))}
	}
	return nil
}

func describeExit(e Exit) string {
	if e.Signal != "" {
		return e.Signal
	}
	return fmt.Sprintf("status %d", e.Code)
}

// removeLayer removes a directory that held an overlay: in its work directory the kernel leaves some of
// mode 000, and what a run makes has any.
func removeLayer(dir string) {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(p, 0o700) // before it is read
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
