package sandbox

import (
	"path"
	"slices"
	"strings"
)

// verb is what a step does.
type verb string

const (
	doScratch verb = "scratch" // mount the private tmpfs of Size bytes, where only init sees it
	doProc    verb = "proc"    // mount a new /proc and lock what in it is the host's
	doDev     verb = "dev"     // make /dev
	doShow    verb = "show"    // make directory Source in scratch with Mode and show it at Target
	doDir     verb = "dir"     // make the directory Target with Mode where it is missing
	doBind    verb = "bind"
	doOverlay verb = "overlay"
	doSymlink verb = "symlink"
	doFile    verb = "file"
	doMask    verb = "mask"
	doSeal    verb = "seal" // take scratch, and the host's root with it, out of reach and make the root read-only
)

// step is one thing that init does to build what the run sees. It crosses the hand-off.
type step struct {
	Do       verb   `json:"do"`
	Target   wire   `json:"target,omitempty"`
	Source   wire   `json:"source,omitempty"`
	Upper    wire   `json:"upper,omitempty"`
	Work     wire   `json:"work,omitempty"`
	Mask     wire   `json:"mask,omitempty"`
	Content  blob   `json:"content,omitempty"`
	Mode     uint32 `json:"mode,omitempty"`
	Size     int64  `json:"size,omitempty"`
	Writable bool   `json:"writable,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// faces are the places where the private tmpfs is seen. They are sub-directories of one filesystem, so
// that one size bounds them all.
var faces = []step{
	{Do: doShow, Target: "/dev/shm", Source: "shm", Mode: 0o1777},
	{Do: doShow, Target: "/home", Source: "home", Mode: 0o755},
	{Do: doShow, Target: "/run", Source: "run", Mode: 0o755},
	{Do: doShow, Target: "/tmp", Source: "tmp", Mode: 0o1777},
	{Do: doShow, Target: "/var/tmp", Source: "var-tmp", Mode: 0o1777},
}

// plan gives the steps that build what a run sees, on an empty tmpfs that is already the root. It is
// pure; the order is the whole of its work:
//
//  1. the private tmpfs, since /proc takes the empty file and directory that hide things from it;
//  2. /proc and /dev, which nothing of the caller's may replace;
//  3. the faces of the private tmpfs: /tmp, /home, …;
//  4. the caller's mounts and the home directory by depth of their target, parents first, so that a
//     workspace below /tmp or /home appears on top of the private tmpfs and a mount inside another one
//     is not covered by it; the order given is kept within a depth;
//  5. masks, by depth, after everything that they could have to hide;
//  6. the seal: the host's root is left with scratch, and afterwards the root, its directories and links can't be changed.
//
// What was opened on the host before step 1 is held by descriptors: no step looks a host path up.
func plan(s Spec) []step {
	const own = 5 // scratch, /proc, /dev, the home directory and the seal
	steps := append(make([]step, 0, own+len(faces)+len(s.Mounts)),
		step{Do: doScratch, Size: s.Limits.Disk},
		step{Do: doProc, Target: "/proc"},
		step{Do: doDev, Target: "/dev"})
	for _, f := range faces {
		// Where the host has a link (/home to /var/home), the run has it too, and no face.
		if !slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Kind == MountSymlink && m.Target == string(f.Target) }) {
			steps = append(steps, f)
		}
	}

	var masks []step
	mounts := make([]step, 0, len(s.Mounts)+1) // and the home directory
	for _, m := range s.Mounts {
		st := m.step()
		switch {
		case st.Do == doMask:
			masks = append(masks, st)
		case st.Do == doSymlink && slices.ContainsFunc(mounts, st.same):
			// Two things that are shown may be reached through the same link.
		default:
			mounts = append(mounts, st)
		}
	}
	if st, ok := homeStep(s); ok {
		mounts = append(mounts, st)
	}
	steps = appendByDepth(steps, mounts)
	steps = appendByDepth(steps, masks)
	return append(steps, step{Do: doSeal, Target: "/"})
}

// split divides a plan into what can be built before there is a run, and the rest. The layers of a run are its own and are
// mounted when it begins, as is whatever goes on top of them; masks come last, since they hide what is there then.
func split(steps []step) (base, rest []step) {
	base = make([]step, 0, len(steps))
	for _, st := range steps {
		if st.ofRun() || st.on(rest) {
			rest = append(rest, st)
		} else {
			base = append(base, st)
		}
	}
	return base, rest
}

func (st step) ofRun() bool {
	switch st.Do {
	case doOverlay, doMask, doSeal:
		return true
	case doBind:
		return st.Writable
	default:
		return false
	}
}

// on reports whether the step's target lies in that of one of the others.
func (st step) on(others []step) bool {
	return slices.ContainsFunc(others, func(o step) bool { return under(string(st.Target), string(o.Target)) })
}

// remaining gives what is left of a plan where some of it was built, which need not be its base: what is built must all be
// wanted, and in the order of the plan, and nothing that is left may have had to come before something that is built.
func remaining(steps, built []step) (rest []step, ok bool) {
	for _, st := range steps {
		switch {
		case len(built) > 0 && st == built[0]:
			if st.on(rest) {
				return nil, false
			}
			built = built[1:]
		default:
			rest = append(rest, st)
		}
	}
	return rest, len(built) == 0
}

// homeStep makes the home directory, unless a mount shows it or what it lies in.
func homeStep(s Spec) (step, bool) {
	if s.Home == "" || s.Home == "/" {
		return step{}, false
	}
	for _, m := range s.Mounts {
		if m.Kind != MountMask && under(s.Home, m.Target) {
			return step{}, false
		}
	}
	for _, f := range faces {
		if s.Home == string(f.Target) {
			return step{}, false
		}
		if under(s.Home, string(f.Target)) {
			return step{Do: doDir, Target: wire(s.Home), Mode: 0o755}, true
		}
	}
	return step{Do: doShow, Target: wire(s.Home), Source: "user", Mode: 0o755}, true
}

func (m Mount) step() step {
	st := step{Do: verb(m.Kind), Target: wire(m.Target), Optional: m.Optional}
	switch m.Kind {
	case MountBind:
		st.Source, st.Writable = wire(m.Source), m.Writable
	case MountOverlay:
		st.Source, st.Upper, st.Work, st.Mask = wire(m.Source), wire(m.Upper), wire(m.Work), wire(m.Mask)
	case MountSymlink:
		st.Source = wire(m.Source)
	case MountFile:
		st.Content = blob(m.Content)
	case MountMask:
	}
	return st
}

func (st step) same(o step) bool {
	return st.Do == o.Do && st.Target == o.Target && st.Source == o.Source
}

// appendByDepth appends steps in the order of their targets' depth, and keeps their own within one. It computes each depth
// once; a sort would clean and count both paths at every comparison.
func appendByDepth(to, steps []step) []step {
	depths, deepest := make([]int, len(steps)), 0
	for i, st := range steps {
		depths[i] = depth(st.Target)
		deepest = max(deepest, depths[i])
	}
	for d := range deepest + 1 {
		for i, st := range steps {
			if depths[i] == d {
				to = append(to, st)
			}
		}
	}
	return to
}

func depth(p wire) int { return strings.Count(path.Clean(string(p)), "/") }
