package overlay

import (
	"fmt"
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf("f%02d", i)
	}
	for _, tt := range []struct {
		report Report
		want   string
	}{
		{Report{}, "workspace: no changes"},
		{Report{Landed: true}, "workspace: no changes"},
		{
			Report{Landed: true, Added: []string{"d"}, Modified: []string{"b", "c"}, Deleted: []string{"a"}},
			"workspace: 1 added, 2 modified, 1 deleted: d, b, c, a",
		},
		{
			Report{Landed: true, Modified: []string{"b.txt"}, Conflicts: []Conflict{{Path: "a.txt", KeptAs: "a.txt.conflict-7f3a"}}},
			"workspace: 1 modified: b.txt; 1 conflict: a.txt changed meanwhile and was kept, this run's version is a.txt.conflict-7f3a",
		},
		{
			Report{Landed: true, Conflicts: []Conflict{{Path: "a"}, {Path: "b\n", KeptAs: "b\n.conflict-1"}}},
			`workspace: 2 conflicts: a changed meanwhile and was kept as it is, "b\n" changed meanwhile and was kept, this run's version is "b\n.conflict-1"`,
		},
		{
			Report{Landed: true, Added: many[:namesShown-1], Deleted: []string{"gone"}},
			"workspace: 11 added, 1 deleted: f00, f01, f02, f03, f04, f05, f06, f07, f08, f09, f10, gone",
		},
		{
			Report{Landed: true, Added: []string{".git/objects/ab/c", "new", "sub/.git/x"}, Modified: []string{".git/index", "changed"}},
			"workspace: 3 added, 2 modified: new, changed, .git/objects/ab/c, sub/.git/x, .git/index",
		},
		{
			Report{Landed: true, Added: many, Deleted: []string{"gone"}},
			"workspace: 30 added, 1 deleted: gone, f00, f01, f02, f03, f04, f05, f06, f07, f08, f09, f10 and 19 more",
		},
		{ // names that would read as several, or as airlock's words
			Report{Landed: true, Added: []string{"My file", "a, b", " c", "d; 1 conflict: e changed meanwhile and was kept", "f and 3 more"}},
			`workspace: 5 added: My file, "a, b", " c", "d; 1 conflict: e changed meanwhile and was kept", "f and 3 more"`,
		},
		{
			Report{Waiting: "7f3a", Modified: []string{"a.txt", "b.txt"}},
			"workspace: not landed: 2 modified wait for review: a.txt, b.txt (airlock land 7f3a)",
		},
		{
			Report{Waiting: "7f3a", Deleted: []string{"a"}, Conflicts: []Conflict{{Path: "b"}, {Path: "c"}}},
			"workspace: not landed: 1 deleted waits for review: a; 2 conflicts: b changed meanwhile, c changed meanwhile (airlock land 7f3a)",
		},
		{
			Report{Waiting: "7f3a", Conflicts: []Conflict{{Path: "b"}}},
			"workspace: not landed: 1 conflict waits for review: b changed meanwhile (airlock land 7f3a)",
		},
		{
			Report{Waiting: "7f3a", Reason: "conflict: b changed meanwhile", Conflicts: []Conflict{{Path: "b"}}},
			"workspace: nothing landed: conflict: b changed meanwhile; the run waits on (airlock land 7f3a)",
		},
		{Report{Discarded: 3, Reason: "timeout"}, "workspace: discarded 3 changes (timeout)"},
		{Report{Discarded: 1}, "workspace: discarded 1 change"},
	} {
		if got := tt.report.Summary(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestWithheldLine(t *testing.T) {
	r := Report{Landed: true}
	if got := r.WithheldLine(); got != "" {
		t.Errorf("nothing withheld: %q", got)
	}
	r.Withheld = []Withheld{{".mcp.json", "protected"}, {"s", "setuid bit removed"}}
	if got, want := r.WithheldLine(), "withheld: .mcp.json (protected), s (setuid bit removed)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for range 20 {
		r.Withheld = append(r.Withheld, Withheld{"x", "FIFO"})
	}
	if got := r.WithheldLine(); !strings.HasSuffix(got, " and 10 more") {
		t.Errorf("got %q", got)
	}
}
