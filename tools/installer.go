package tools

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"airlock/envs"
	"airlock/overlay"
	"airlock/proxy"
	"airlock/sandbox"
)

// installer runs the steps of installations, each in a sandbox of its own: it sees the system's programs
// and what the step names, has no home and no workspace, and reaches the package index or nothing.
type installer struct {
	backend  sandbox.Backend
	system   []sandbox.Mount // the programs of the host; not what sandbox.read names
	limits   Limits
	identity Identity
	gateway  func() (*proxy.Gateway, error) // to the index, whatever the network of runs is
}

var _ envs.Installer = (*installer)(nil)

// InstallNetwork is the network of an installer, made of that of runs: the same addresses, upstream and
// private ranges, but open to exactly the given destinations, each "host" or "host:port".
func InstallNetwork(c proxy.Config, destinations []string) proxy.Config {
	c.Mode, c.Allow, c.Deny = "allowlist", slices.Clone(destinations), nil
	return c
}

// Run implements [envs.Installer].
func (in *installer) Run(ctx context.Context, s envs.Step) (envs.Outcome, error) {
	ctx, stop := context.WithTimeoutCause(ctx, in.limits.MaxTimeout.Std(), errTimeout)
	defer stop()
	spec, written, err := in.spec(s)
	if err != nil {
		return envs.Outcome{}, err
	}
	out := NewOutput(in.limits.Output)
	stdio := sandbox.Stdio{Output: outputFunc(out.Write)}
	var way *egress
	if s.Network {
		gateway, err := in.gateway()
		if err != nil {
			return envs.Outcome{}, fmt.Errorf("the installer has no network: %w", err)
		}
		way = &egress{gateway: gateway, ports: choosePorts()}
		way.attachTo(&spec)
		stdio.Attach = way.attach
	}
	running, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	measure := func(ctx context.Context) (int64, error) { return usage(ctx, written, false) }
	watching.Go(func() {
		watchUse(running, measure, func(used int64) bool { return used > int64(in.limits.Disk) }, cancel)
	})
	watching.Go(func() {
		watchFree(running, func() (int64, error) { return overlay.DirFree(written[0]) }, cancel)
	})
	process, err := in.backend.Start(running, spec, stdio)
	var exit sandbox.Exit
	if err == nil {
		exit, err = process.Wait()
	}
	cause := context.Cause(running)
	cancel(nil)
	watching.Wait()
	outcome := envs.Outcome{Code: exit.Code}
	outcome.Output, _ = out.Snapshot()
	if way != nil {
		var r Result
		way.close(&r)
		outcome.Unreached = way.unreached()
		for _, d := range r.Network.refusals {
			outcome.Refused = append(outcome.Refused, fmt.Sprintf("%s (%s)", d.Destination(), d.Reason))
		}
	}
	switch {
	case exit.Killed && errors.Is(cause, errDisk):
		outcome.Ended = "limits.disk, " + in.limits.Disk.String()
	case exit.Killed && errors.Is(cause, errTimeout):
		outcome.Ended = "limits.max_timeout, " + in.limits.MaxTimeout.String()
	case exit.Killed:
		outcome.Ended = "cancelled"
	case err != nil:
		return outcome, err
	case exit.LimitEnded:
		outcome.Ended = "limits." + exit.Limit
	case exit.Signal != "":
		outcome.Ended = exit.Signal
	case exit.StartError != "":
		outcome.Ended = exit.StartError
	}
	if outcome.Ended == "" {
		switch used, err := usage(ctx, written, true); {
		case err != nil && ctx.Err() != nil:
			outcome.Ended = "cancelled"
		case err != nil:
			outcome.Ended = "what it wrote could not be measured: " + err.Error()
		case used > int64(in.limits.Disk):
			outcome.Ended = "limits.disk, " + in.limits.Disk.String()
		}
	}
	return outcome, nil
}

// spec describes a step's sandbox, and gives the directories that it writes to.
func (in *installer) spec(s envs.Step) (spec sandbox.Spec, written []string, err error) {
	spec = sandbox.Spec{
		ID: "install-" + NewRunID(), Argv: s.Argv, Env: s.Env, Dir: s.Dir,
		UID: in.identity.UID, GID: in.identity.GID,
		Mounts: slices.Clone(in.system), Limits: in.limits.sandbox(), Network: sandbox.NetworkNone,
	}
	for _, path := range s.Show {
		shown, err := sandbox.Show(path)
		if err != nil {
			return spec, nil, err
		}
		spec.Mounts = append(spec.Mounts, shown...)
	}
	for _, b := range s.Binds {
		real, err := filepath.EvalSymlinks(b.Source)
		if err != nil {
			return spec, nil, err
		}
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Kind: sandbox.MountBind, Source: real, Target: b.Target, Writable: b.Writable})
		if b.Writable {
			written = append(written, real)
		}
	}
	if len(written) == 0 {
		return spec, nil, errors.New("bug: a step that writes nothing")
	}
	return spec, written, nil
}

// usage sums up what directories take, as it is counted for a run. final says that their step is over: then nothing
// is left out.
func usage(ctx context.Context, dirs []string, final bool) (int64, error) {
	var sum int64
	var errs []error
	for _, dir := range dirs {
		used, err := overlay.DirUsage(ctx, dir, final)
		sum, errs = sum+used, append(errs, err)
	}
	return sum, errors.Join(errs...)
}
