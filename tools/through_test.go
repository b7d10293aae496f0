package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// A run that writes to the workspace itself is noted before it begins, and forgotten if nothing ran; where that fails, its result
// says so, but where there is no history to note it in.
func TestNoted(t *testing.T) {
	broken := errors.New("no room")
	for _, tt := range []struct {
		name         string
		note, forget error
		ran          bool
		want         []string // what was done
		notes        int
	}{
		{"it ran", nil, nil, true, []string{"note", "run"}, 0},
		{"it did not", nil, nil, false, []string{"note", "run", "forget"}, 0},
		{"the note fails", broken, nil, true, []string{"note", "run"}, 1},
		{"the note fails, and nothing ran", broken, nil, false, []string{"note", "run"}, 1},
		{"it is not forgotten", nil, broken, false, []string{"note", "run", "forget"}, 1},
		{"there is no history", fmt.Errorf("here: %w", errors.ErrUnsupported), nil, true, []string{"note", "run"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var did []string
			w := &WorkspaceRunner{direct: func(context.Context, string, string) (func() error, error) {
				did = append(did, "note")
				return func() error { did = append(did, "forget"); return tt.forget }, tt.note
			}}
			result := w.noted(t.Context(), "1a2b3c4d", Request{Command: "true"}, func() Result {
				did = append(did, "run")
				return Result{Workspace: Workspace{Landed: tt.ran}}
			})
			if !slices.Equal(did, tt.want) || len(result.Notes) != tt.notes {
				t.Errorf("did %q with the notes %q, want %q and %d", did, result.Notes, tt.want, tt.notes)
			}
		})
	}
}
