package sandboxtest

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// probe is one thing that a run must not be able to do.
type probe struct {
	name string
	// try makes the attempt and returns nil if it got through. It is called in a process that is made for it.
	try func(*stage) error
	// held is what the attempt must get in a run: any one of these, where the kernel's answer depends on the
	// user or on which of several walls stands first.
	held []error
	// control is where the same attempt gets through; beyond is how one can tell, if not by its success.
	control place
	beyond  []error
	// absent is what a control gets where the host has not got what is attacked, and why is the reason for
	// that, or for why there can be no control anywhere.
	absent []error
	why    string
}

// place is where a control is made.
type place int

const (
	onHost  place = iota // as the user of the test
	asRoot               // likewise, if that is root: nobody else may do it
	apart                // in namespaces that are thrown away, with every capability over them
	nowhere              // probe.why says why
)

// Outcomes that no errno tells.
var (
	errUnharmed = errors.New("unharmed")      // what was attacked lives on
	errNothing  = errors.New("nothing found") // what was searched for is nowhere
	errUngained = errors.New("gained nothing")
	errMissing  = errors.New("not on this host") // what the attempt is about; makes no control
)

// outcomeOf names what came of an attempt, so that it can be compared across processes: "success", the name of an
// errno, or the text of one of the errors above.
func outcomeOf(err error) string {
	var errno unix.Errno
	switch {
	case err == nil:
		return success
	case errors.As(err, &errno):
		if name := unix.ErrnoName(errno); name != "" {
			return name
		}
	}
	for _, e := range []error{errUnharmed, errNothing, errUngained, errMissing} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return err.Error()
}

const success = "success"

// among reports whether an outcome is one of errs.
func among(outcome string, errs []error) bool {
	return slices.ContainsFunc(errs, func(e error) bool { return outcomeOf(e) == outcome })
}

func outcomes(errs []error) []string {
	var names []string
	for _, e := range errs {
		names = append(names, outcomeOf(e))
	}
	return names
}

func refused(errs ...error) []error { return errs }

// probes is the whole table.
func probes() []probe {
	return slices.Concat(
		readProbes(), processProbes(), writeProbes(), aliasProbes(),
		mountProbes(), namespaceProbes(), kernelProbes(), socketProbes(),
		gainProbes(), machineProbes(),
	)
}
