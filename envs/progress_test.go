package envs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a step that goes on has written is what is told of it; it may be anything.
func TestProgressTexts(t *testing.T) {
	build := t.TempDir()
	for _, tt := range []struct{ content, want string }{
		{`{"found": 1}`, "resolving, 1 package so far"},
		{`{"found": 12}`, "resolving, 12 packages so far"},
		{`{"done": 3, "all": 7}`, "resolving 3 of 7 packages"},
		{``, ""},
		{`{"fo`, ""},
		{`{"done": "x"}`, ""},
		{strings.Repeat(" ", 1<<20) + `{"found": 1}`, ""},
		{`{"found": -1}`, ""},
	} {
		if err := os.WriteFile(filepath.Join(build, "progress.json"), []byte(tt.content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := resolving(build); got != tt.want {
			t.Errorf("%.40q: %q, want %q", tt.content, got, tt.want)
		}
	}
	if got := resolving(t.TempDir()); got != "" {
		t.Errorf("with nothing written: %q", got)
	}
	if got := fetching(build, 40<<20); got != "" {
		t.Errorf("with nothing fetched: %q", got)
	}
	for _, dir := range []string{"wheels", "tmp"} {
		if err := os.Mkdir(filepath.Join(build, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(build, dir, "x"), make([]byte, 6<<20), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for size, want := range map[int64]string{40 << 20: "fetching 12.0 MiB of 40.0 MiB", 0: "fetching, 12.0 MiB so far", 8 << 20: "fetching 8.0 MiB of 8.0 MiB"} {
		if got := fetching(build, size); got != want {
			t.Errorf("of %d: %q, want %q", size, got, want)
		}
	}
}

// What an installer prints of its failure is told by what it says, not by how it begins to.
func TestComplaint(t *testing.T) {
	for _, tt := range []struct{ output, want string }{
		{"Collecting x\nERROR: Could not find x\nERROR: No matching distribution found for x\n", "Could not find x; No matching distribution found for x"},
		{"ERROR: x\nERROR: x\n", "x"},
		{"ERROR: Exception:\nTraceback (most recent call last):\n  File \"a\"\npip._vendor.InvalidRequirement: Expected end\n    l\u0435af\n     ^\n", "pip._vendor.InvalidRequirement: Expected end;     l\u0435af;      ^"},
		{"ERROR: Exception:\nTraceback:\nOSError: [Errno 28] No space left on device\n", "OSError: [Errno 28] No space left on device"},
		{"Error in library(x) : there is no package called 'x'\n", "Error in library(x) : there is no package called 'x'"},
		{
			"ERROR: Cannot install -r /build/requirements.txt (line 1) and six>=1.17 because these package versions have conflicting dependencies.\n\nThe conflict is caused by:\n" +
				"    needs-old-six 1.0 depends on six<1.17\n    The user requested six>=1.17\n\nTo fix this you could try to:\n1. loosen\n\nERROR: ResolutionImpossible: for help visit https://x\n",
			"needs-old-six 1.0 depends on six<1.17; The user requested six>=1.17",
		},
		{"killed\n", "killed"},
		{"", ""},
	} {
		if got := complaint(tt.output); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.output, got, tt.want)
		}
	}
}

// The network's own record goes before what an installer makes of it.
func TestCauseOfAFailure(t *testing.T) {
	const pip = "ERROR: No matching distribution found for x\nERROR: the index answered 502 when it was asked for x\n"
	for _, tt := range []struct {
		out  Outcome
		want string
	}{
		{Outcome{Output: pip}, "the packages could not be resolved: No matching distribution found for x; the index answered 502 when it was asked for x"},
		{
			Outcome{Output: pip, Unreached: []string{"index.test:443 could not be reached: no such host"}},
			"the packages could not be resolved: index.test:443 could not be reached: no such host" + unreachedHint,
		},
		{
			Outcome{Output: "ERROR: x\n", Refused: []string{"x.test:443 (not listed)"}},
			"the packages could not be resolved: the network refused x.test:443 (not listed): x",
		},
		{
			Outcome{Ended: "timeout", Unreached: []string{"index.test:443 could not be reached: no such host"}},
			"the packages could not be resolved: index.test:443 could not be reached: no such host" + unreachedHint + ": it was ended (timeout)",
		},
	} {
		if got := (&StepError{Step: "resolve", Outcome: tt.out}).Error(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
