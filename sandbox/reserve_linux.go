package sandbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"airlock/internal/lull"
)

// Most of what a run takes, if its command takes little, is the making of its sandbox. Most of that is alike for many
// runs: the namespaces, init, the cgroup with its limits, the mounts of the system and of toolchains, the sockets of its
// egress. So a sandbox is begun ahead and waits. Its base is all that it knows: it was of no run before, and is of none
// after. What belongs to a run, its layers above all, is mounted when there is one, and is never older than the run.
//
// A spare fits a run that has its identity, limits and network, and in whose plan everything stands that the spare has
// mounted. What the run has beyond that is mounted then, unless it would have had to come before. One whose host has changed
// since, by a mount or by something else at the place of what it shows, is thrown away.

// reserve keeps spares by the last recipe that it was told: one, and more once runs begin faster than spares are made.
type reserve struct {
	start func(context.Context, recipe) (*spare, error)

	mu       sync.Mutex
	told     bool // wanted is set
	wanted   recipe
	next     func() recipe // gives what is to be wanted from the next lull on; nil if that is wanted already
	size     int           // how many to keep; at least 1
	have     []*spare
	starting int
	awaited  int           // of those that are starting, those that runs wait for
	going    int           // runs that have begun, or wait to, and have not ended
	change   chan struct{} // closed, and made anew, when one of these numbers has fallen or have has grown
	idle     *time.Timer   // ends a period in which more than one is kept
	fewest   int           // of have, in the period: so many waited all the time
	filling  bool          // what is missing is begun soon
	closed   bool
	beside   sync.WaitGroup // all that goes on in goroutines
}

const (
	// spareTime bounds the making of a spare.
	spareTime = 10 * time.Second
	// quietTime is how long the host's mounts are given to settle before another spare is made of them.
	quietTime = time.Second
	// maxSpares is how many are kept at most, and idleTime how long more than one is kept of which some are never taken.
	maxSpares = 8
	idleTime  = 30 * time.Second
)

// want has spares made, as many as are missing, in the next lull, by the recipe that by gives. It returns at once: by is called in the
// lull, and only the first time before. mu is held then.
func (r *reserve) want(by func() recipe) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = by
	if !r.told { // a run that comes before the lull is to know what to wait for
		r.tell()
	}
	if r.filling {
		return
	}
	r.filling = true
	go func() {
		lull.Await(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.filling = false
		r.tell()
		r.fill()
	}()
}

// tell has what next gives be wanted from now on, and throws away what was made by another recipe. mu is held, as by all that follow but guard, enter, left, take, shrink and close.
func (r *reserve) tell() {
	if r.next == nil {
		return
	}
	by := r.next()
	r.told, r.wanted, r.next = true, by, nil
	r.keep(func(s *spare) bool { return s.made(by) })
}

// keep throws the spares away that are not to be kept.
func (r *reserve) keep(is func(*spare) bool) {
	r.have = slices.DeleteFunc(r.have, func(s *spare) bool {
		if is(s) {
			return false
		}
		r.beside.Go(s.discard)
		return true
	})
}

func (r *reserve) fill() {
	r.size = max(r.size, 1)
	for r.told && !r.closed && len(r.have)+r.starting < r.size {
		r.begin()
	}
}

// begin begins one spare.
func (r *reserve) begin() {
	by := r.wanted
	r.starting++
	r.beside.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), spareTime)
		defer cancel()
		// Without a spare a run starts its own init, and says why it can't.
		s, err := r.start(ctx, by)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.starting--
		defer r.changed()
		if err != nil {
			return
		}
		surplus := len(r.have) >= max(r.size, 1)
		if r.closed || surplus || !s.made(r.wanted) {
			s.discard()
			return
		}
		r.have = append(r.have, s)
		r.beside.Go(func() { r.guard(s) })
	})
}

func (r *reserve) changed() {
	if r.change != nil {
		close(r.change)
		r.change = nil
	}
}

// guard throws a spare away that waits when the host's mounts change: it would keep a filesystem in use that was unmounted,
// and no run could go on from it.
func (r *reserve) guard(s *spare) {
	if !s.mounts.wait() {
		return // it does not wait any more
	}
	r.mu.Lock()
	r.keep(func(other *spare) bool { return other != s })
	r.mu.Unlock()
	time.AfterFunc(quietTime, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.fill()
	})
}

// enter counts a run, from before it takes a spare until left.
func (r *reserve) enter() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.going++
}

func (r *reserve) left() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.going--
}

// take returns a spare and the steps that it leaves to the run, or nil if there is none that fits the run.
// The end of ctx ends the wait for one.
func (r *reserve) take(ctx context.Context, run recipe, steps []step) (*spare, []step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.wanted.fits(run, steps); ok {
		r.await(ctx)
	}
	for i, s := range r.have {
		own, ok := s.fits(run, steps)
		if !ok {
			continue
		}
		if !s.fresh() {
			r.keep(func(other *spare) bool { return other != s })
			return nil, nil
		}
		r.have = slices.Delete(r.have, i, i+1)
		r.fewest = min(r.fewest, len(r.have))
		s.mounts.close()
		return s, own
	}
	return nil, nil
}

// await returns when a spare waits, or can't be had, or ctx ends. For a run that finds none, and none that is being made for it, one is
// made. If other runs go on as well, more are kept from now on.
func (r *reserve) await(ctx context.Context) {
	if len(r.have) > 0 || !r.told || r.closed {
		return
	}
	if r.going > 1 { // those that had one may have ended by now: more than these were missing
		r.size, r.fewest = min(max(r.size+1, r.going), maxSpares), 0
		r.shrinkLater()
	}
	if r.starting <= r.awaited {
		r.begin()
	}
	r.awaited++
	defer func() { r.awaited-- }()
	before := r.starting
	for len(r.have) == 0 && r.starting >= before && !r.closed && ctx.Err() == nil {
		if r.change == nil {
			r.change = make(chan struct{})
		}
		change := r.change
		r.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
		}
		r.mu.Lock()
	}
}

// shrinkLater keeps fewer spares, at the end of a period, if some have waited all the time.
func (r *reserve) shrinkLater() {
	if r.size > 1 && r.idle == nil {
		r.idle = time.AfterFunc(idleTime, r.shrink)
	}
}

func (r *reserve) shrink() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = nil
	r.size = max(r.size-r.fewest, 1)
	kept := 0
	r.keep(func(*spare) bool { kept++; return kept <= r.size })
	if r.fewest = len(r.have); !r.closed {
		r.shrinkLater()
	}
}

// close throws the spares away. Nothing is taken or made any more.
func (r *reserve) close() {
	r.mu.Lock()
	r.closed = true
	r.keep(func(*spare) bool { return false })
	if r.idle != nil {
		r.idle.Stop()
	}
	r.changed()
	r.mu.Unlock()
	r.beside.Wait()
}

// Prepare has the sandbox of a run like this begun ahead, unless one waits already. It returns at once, and begins it in
// the next lull, or when a run starts; the spec must not be changed until then. Of what the spec mounts only that is mounted which needs no run. Where it
// executes a bash with -c, whatever its command is, a shell is started ahead as well, in the spec's environment, which must
// therefore be one that nobody hostile has a say in.
func (n *Native) Prepare(spec Spec) {
	n.reserve.want(func() recipe {
		by, _ := recipeOf(spec, plan(spec))
		by.base.Shell = shellFor(spec)
		return by
	})
}
