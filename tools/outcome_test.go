package tools

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"airlock/overlay"
)

// What a run changes is its own choice: a result stays of a size that a client can take, and says so.
func TestReportOfManyPaths(t *testing.T) {
	report := overlay.Report{Landed: true, Modified: []string{"m"}}
	for i := range 100_000 {
		report.Added = append(report.Added, fmt.Sprintf("f%06d", i))
	}
	r := withReport(Result{Status: StatusExited}, report)
	if len(r.Workspace.Added) != maxPaths || r.Workspace.Added[0] != "f000000" || !slices.Equal(r.Workspace.Modified, []string{"m"}) {
		t.Errorf("%d added, modified %q", len(r.Workspace.Added), r.Workspace.Modified)
	}
	want := "the structured lists hold the first 1000 paths only; there are 100,000 added"
	if !slices.Contains(r.Notes, want) {
		t.Errorf("notes are %q, want %q", r.Notes, want)
	}
	if text := r.Text(); len(text) > 4<<10 || !strings.Contains(text, "100000 added, 1 modified") {
		t.Errorf("the text has %d bytes: %.200q", len(text), text)
	}
	if r := withReport(Result{}, overlay.Report{Added: make([]string, maxPaths)}); len(r.Notes) != 0 {
		t.Errorf("a full list is noted: %q", r.Notes)
	}
}

// A result says how much a run had of what ended it.
func TestBound(t *testing.T) {
	l := DefaultLimits()
	code := 1
	for _, tt := range []struct {
		result  Result
		timeout time.Duration
		want    string
	}{
		{Result{Status: StatusTimeout}, 2 * time.Minute, "the run had 2m; a call can give it up to 1h (limits.timeout, limits.max_timeout)"},
		{Result{Status: StatusTimeout}, time.Hour, "the run had 1h, and no call can give it more (limits.max_timeout)"},
		{Result{Status: StatusLimit, Limit: "memory"}, time.Minute, "limits.memory is 4GiB"},
		{Result{Status: StatusLimit, Limit: "disk"}, time.Minute, "limits.disk is 4GiB"},
		{Result{Status: StatusExited, ExitCode: &code, Limit: "processes"}, time.Minute, ""},
		{Result{Status: StatusCancelled}, time.Minute, ""},
	} {
		if got := l.bound(tt.result, tt.timeout); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.result.Status, tt.result.Limit, got, tt.want)
		}
	}
}
