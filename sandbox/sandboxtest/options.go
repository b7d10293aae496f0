package sandboxtest

import (
	"testing"

	"airlock/sandbox"
)

// Options say what [Run] shall do beside its table. The zero value is strict.
type Options struct {
	// Except names probes that the backend is known not to hold, each with the reason. They are made all the
	// same, and one that holds is an error, so that the list can't outlive its reasons.
	Except map[string]string

	// UID is who the run is where that is not the user of the test, which is root's to choose: then it is a server of root's on
	// somebody else's workspace. GID goes with it. The controls stay those of root.
	UID, GID int

	// Edit changes the Spec before it is started; nil leaves it.
	Edit func(*sandbox.Spec)

	// Lacks is told what this host does not offer: "userns", without which there is no run, or "controls",
	// if the control of a probe fails for no reason that the table states. It may fail or skip the test. nil
	// fails it.
	Lacks func(t *testing.T, what string, why any)
}

func (o Options) lacks(t *testing.T, what string, why any) {
	t.Helper()
	if o.Lacks == nil {
		t.Fatalf("this host lacks %s: %v", what, why)
	}
	o.Lacks(t, what, why)
}
