package tools

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"airlock/overlay"
)

// TestReview: with land_on = "review" a run that ended well waits, and both forms of its result say so.
// The others end as ever.
func TestReview(t *testing.T) {
	for _, tt := range []struct {
		name      string
		code      int
		onFailure string
		waits     bool
		text      string
	}{
		{"success", 0, "", true, "workspace: not landed: 1 added waits for review: new (airlock land r1)"},
		{"failure", 7, "", false, "workspace: discarded 1 change (exit 7)"},
		{"kept failure", 7, "keep", true, "workspace: not landed: 1 added waits for review: new (airlock land r1)"},
		{"success, whatever on_failure says", 0, "discard", true, "workspace: not landed: 1 added waits for review: new (airlock land r1)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			layers, err := overlay.Open(dir, t.TempDir(), overlay.Defaults())
			if err != nil {
				t.Fatal(err)
			}
			defer layers.Close()
			w := NewRunner(RunnerOptions{Layers: layers, Policy: Policy{LandOn: "review", Limits: DefaultLimits()}})
			txn, err := layers.Begin(context.Background(), "r1")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(txn.Layer().Upper, "new"), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
			ended := Result{Status: StatusExited, ExitCode: &tt.code}
			report, err := w.finish(context.Background(), txn, ended, tt.onFailure)
			if err != nil {
				t.Fatal(err)
			}
			result := withReport(ended, report)
			if !strings.Contains(result.Text(), "\n"+tt.text) || strings.Contains(result.Text(), "note:") || result.IsError() {
				t.Errorf("text: %s", result.Text())
			}
			s := result.structured()
			noted := len(s.Notes) == 1 && strings.Contains(s.Notes[0], "airlock land r1") && len(s.Workspace.Added) == 1
			if s.Workspace.Landed || noted != tt.waits {
				t.Errorf("structure: %+v", s)
			}
			if _, err := os.Lstat(filepath.Join(dir, "new")); !os.IsNotExist(err) {
				t.Errorf("it landed: %v", err)
			}
			waiting, err := layers.Waiting(context.Background())
			if err != nil || (len(waiting) == 1) != tt.waits {
				t.Errorf("waiting: %+v, %v", waiting, err)
			}
		})
	}
}
