package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// spare is a sandbox without a run.
type spare struct {
	recipe
	*blank
	group *cgroup // nil if there is none
	shown shown
}

// recipe is what a spare is made by.
type recipe struct {
	uid, gid int
	limits   Limits
	base     base
}

// recipeOf says what is built for a run before its own steps, which are the others.
func recipeOf(s Spec, steps []step) (r recipe, own []step) {
	r = recipe{uid: s.UID, gid: s.GID, limits: s.Limits, base: base{Hostname: wire(hostname(s))}}
	r.base.Steps, own = split(steps)
	if s.Network == NetworkRedirected {
		r.base.Egress = &s.Egress
	}
	return r, own
}

// fits reports whether a run can go on from what the recipe makes, and what steps are left then.
func (r recipe) fits(run recipe, steps []step) (own []step, ok bool) {
	if !r.likeIn(run) {
		return nil, false
	}
	return remaining(steps, r.base.Steps)
}

// made reports whether the spare is what the recipe makes.
func (s *spare) made(by recipe) bool {
	return s.likeIn(by) && s.base.Shell.equal(by.base.Shell) && slices.Equal(s.base.Steps, by.base.Steps)
}

// likeIn compares what both must have alike: not the steps, and not the shell, which a run need not take.
func (r recipe) likeIn(o recipe) bool {
	sameEgress := r.base.Egress == nil && o.base.Egress == nil ||
		r.base.Egress != nil && o.base.Egress != nil && *r.base.Egress == *o.base.Egress
	return sameEgress && r.uid == o.uid && r.gid == o.gid && r.limits == o.limits && r.base.Hostname == o.base.Hostname
}

// fresh reports whether init lives, sees the mounts that the host has now, and shows what is at its places now.
func (s *spare) fresh() bool {
	// Init says nothing before it has its config.
	fds := []unix.PollFd{{Fd: fdOf(s.pipes.control), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return n == 0 && err == nil && !s.mounts.changed() && s.shown.unchanged()
}

// fdOf is a file's descriptor, which stays as non-blocking as it is.
func fdOf(f *os.File) int32 {
	fd := int32(-1)
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(n uintptr) { fd = int32(n) })
	}
	return fd
}

// discard ends a spare. What can't be removed of its cgroup the janitor removes.
func (s *spare) discard() {
	s.blank.discard()
	if s.group != nil {
		_ = s.group.remove()
	}
}

// spares numbers the cgroups of spares.
var spares atomic.Int64

// newSpare makes the sandbox of a run, but for what is the run's own. The end of ctx ends it. A *SetupError says why it
// can't be had.
func (n *Native) newSpare(ctx context.Context, by recipe) (_ *spare, err error) {
	s := &spare{recipe: by, shown: shownBy(by.base, time.Now())} // before init looks
	defer func() {
		if err != nil {
			s.discard()
		}
	}()
	if s.blank, err = n.takeBlank(by.uid, by.gid); err != nil {
		return nil, err
	}
	if s.group, err = n.newGroup("run-"+strconv.FormatInt(spares.Add(1), 10), by.limits); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, s.init.kill)()
	if err := s.lay(); err != nil {
		return nil, n.maker.explain(err)
	}
	return s, nil
}

// lay puts init into its cgroup, sends it the base and waits until it stands. Nothing of a run is ever outside its
// cgroup, since init does nothing before it has the base.
func (s *spare) lay() error {
	if err := s.init.ready(s.group, s.pipes.control); err != nil {
		return err
	}
	err := send(s.pipes.control, message{Base: &s.base})
	if err != nil && !errors.Is(err, unix.EPIPE) { // if init is gone, reading says more
		return setupError("hand over the base", "", err)
	}
	m, err := receive(s.pipes.control)
	switch {
	case err != nil:
		return setupError("build the sandbox", "", fmt.Errorf("init ended without a word: %w", err))
	case m.Failed != nil:
		return m.Failed.setupError()
	case m.Built == nil:
		return setupError("build the sandbox", "", errors.New("bug: init said something else than what was due"))
	}
	return nil
}
