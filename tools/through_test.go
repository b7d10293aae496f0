package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// A run that writes to the workspace itself is noted before it begins, and forgotten if nothing ran; what goes wrong with that is
// told.
func TestNoted(t *testing.T) {
	failed := errors.New("no room")
	for _, tt := range []struct {
		name         string
		landed       bool
		note, forget error
		did          []string
		told         bool
	}{
		{"a run", true, nil, nil, []string{"note", "run"}, false},
		{"one that did not begin", false, nil, nil, []string{"note", "run", "forget"}, false},
		{"one that can't be noted", true, failed, nil, []string{"note", "run"}, true},
		{"one that can't be noted, and did not begin", false, failed, nil, []string{"note", "run"}, true},
		{"one where there is no history", true, fmt.Errorf("here: %w", errors.ErrUnsupported), nil, []string{"note", "run"}, false},
		{"one that can't be forgotten", false, nil, failed, []string{"note", "run", "forget"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var did []string
			w := &WorkspaceRunner{direct: func(_ context.Context, run, what string) (func() error, error) {
				if run != "r1" || what != "run_shell: true" {
					t.Errorf("noted %s as %q", run, what)
				}
				did = append(did, "note")
				if tt.note != nil {
					return nil, tt.note
				}
				return func() error { did = append(did, "forget"); return tt.forget }, nil
			}}
			result := w.noted(t.Context(), "r1", Request{Tool: "run_shell", Command: "true"}, func() (r Result) {
				did = append(did, "run")
				r.Workspace.Landed = tt.landed
				return r
			})
			if !slices.Equal(did, tt.did) {
				t.Errorf("did %q, want %q", did, tt.did)
			}
			told := slices.Equal(result.Notes, []string{"whether this run is listed by airlock log is not known: no room"})
			if told != tt.told || !told && len(result.Notes) > 0 {
				t.Errorf("notes %q", result.Notes)
			}
		})
	}
}
