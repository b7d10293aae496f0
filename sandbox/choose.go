package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Choice is what "auto" comes to on this host. It holds for as long as the host's settings do: a server makes it once.
type Choice struct {
	// Name is the backend, "native" or "bwrap"; "" if there is none that isolates runs here.
	Name string
	// Why says what speaks for it, as the end of a sentence; "" if Name is.
	Why string
	// Refused are the backends that were tried before and do not work here.
	Refused []Refused
}

// Refused is a backend that does not work on this host.
type Refused struct {
	Name string
	Err  error // mostly a *SetupError
}

// candidate is a backend that Choose may take.
type candidate struct {
	name string
	open func() (probed, error)
}

// probed is a backend that can be tried.
type probed interface {
	Backend

	// probeWithoutOverlay is Probe with a workspace that is bound and not on an overlay.
	probeWithoutOverlay(ctx context.Context) error
}

// candidates are the backends that isolate, in the order in which "auto" takes them.
var candidates = []candidate{
	{"native", func() (probed, error) { return orNone(NewNative()) }},
	{"bwrap", func() (probed, error) { return orNone(NewBubblewrap()) }},
}

// Isolating are the names of the backends that isolate.
var Isolating = []string{candidates[0].name, candidates[1].name}

// orNone turns a nil pointer into a nil interface.
func orNone[B probed](b B, err error) (probed, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Open prepares the backend of that name, "native" or "bwrap".
func Open(name string) (Backend, error) {
	for _, c := range candidates {
		if c.name == name {
			return c.open()
		}
	}
	return nil, fmt.Errorf("sandbox: bug: no backend %q isolates", name)
}

// Choose tries the backends that isolate, one after the other, and stops at the first that works; given names, it
// tries only those. Each is tried for as long as limit at most; it takes some tens of milliseconds. When Choose returns
// no process of a try is left.
func Choose(ctx context.Context, limit time.Duration, names ...string) Choice {
	wanted := slices.DeleteFunc(slices.Clone(candidates), func(c candidate) bool {
		return len(names) > 0 && !slices.Contains(names, c.name)
	})
	c, b := choose(ctx, wanted, limit)
	if b != nil {
		_ = b.Close() // it ran nothing that could be left
	}
	return c
}

// ChooseOpen is Choose, and returns the backend that a sandbox was built with, whose parts have started, to be used and closed.
// It is nil if there is none.
func ChooseOpen(ctx context.Context, limit time.Duration) (Choice, Backend) {
	return choose(ctx, candidates, limit)
}

func choose(ctx context.Context, candidates []candidate, limit time.Duration) (Choice, Backend) {
	var c Choice
	var unproven string
	for _, one := range candidates {
		why, b, err := one.try(ctx, limit)
		if err == nil {
			c.Name, c.Why = one.name, why
			return c, b
		}
		c.Refused = append(c.Refused, Refused{one.name, err})
		if unproven == "" && errors.Is(err, context.DeadlineExceeded) {
			unproven = one.name
		}
	}
	if unproven != "" {
		// A slow host is no reason to refuse every run. Nothing is risked: a backend isolates a run, or does not
		// start it.
		c.Name, c.Why = unproven, fmt.Sprintf("no other works here, and only for want of time was it not tried to the end (%s)", limit)
	}
	return c, nil
}

// try says what speaks for a backend, and returns it, or why it does not work.
func (c candidate) try(ctx context.Context, limit time.Duration) (why string, _ Backend, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b, err := c.open()
	if err != nil {
		return "", nil, err
	}
	if why, err = prove(ctx, b); err != nil {
		_ = b.Close() // it ran nothing that could be left
		return "", nil, err
	}
	return why, b, nil
}

// prove has a backend build a sandbox, and says what that shows, or why it can't.
func prove(ctx context.Context, b probed) (why string, err error) {
	err = b.Probe(ctx)
	if err == nil {
		return "a sandbox was built with it", nil
	}
	if e := new(SetupError); !errors.As(err, &e) || e.Op != OpMountOverlay {
		return "", err
	}
	// That the directory of temporary files can't be on an overlay says nothing of a workspace, and a workspace that
	// can't be is copied.
	if e := b.probeWithoutOverlay(ctx); e != nil {
		return "", e
	}
	return fmt.Sprintf("a sandbox was built with it, but without an overlay (%v)", err), nil
}

// Err is nil, or says for each backend why it does not work.
func (c Choice) Err() error {
	if c.Name != "" {
		return nil
	}
	var errs []error
	for _, r := range c.Refused {
		errs = append(errs, fmt.Errorf("sandbox.backend = %q: %w", r.Name, r.Err))
	}
	return errors.Join(errs...)
}

// Cause says in one line what is in the way of a backend: what a person can do about it says more than what the
// kernel said, where it is known.
func (r Refused) Cause() string {
	text := r.Err.Error()
	if e := new(SetupError); errors.As(r.Err, &e) && e.Hint != "" {
		text = e.Hint
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}
