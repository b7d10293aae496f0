package tools

import (
	"testing"

	"airlock/sandbox"
)

// A run that left half of a directory under each of two names lands under no policy.
func TestTornRunNeverLands(t *testing.T) {
	w := NewRunner(RunnerOptions{Policy: Policy{LandOn: "exit"}})
	for _, onFailure := range []string{"", "keep", "discard"} {
		if result := ended(sandbox.Exit{Torn: true}); w.lands(result, onFailure) || result.Status != StatusError {
			t.Errorf("on_failure %q: %+v", onFailure, result)
		}
	}
	if !w.lands(ended(sandbox.Exit{}), "") {
		t.Error("control: a run that is whole doesn't land either")
	}
}
