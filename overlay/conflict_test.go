package overlay

import (
	"strings"
	"testing"
)

func TestConflictName(t *testing.T) {
	for _, tt := range []struct {
		name    string
		attempt int
		want    string
	}{
		{"a.txt", 1, "a.txt.conflict-7f3a"},
		{"a.txt", 2, "a.txt.conflict-7f3a-2"},
		{strings.Repeat("x", 255), 1, strings.Repeat("x", 241) + ".conflict-7f3a"},
		{strings.Repeat("é", 127), 1, strings.Repeat("é", 120) + ".conflict-7f3a"},
		{strings.Repeat("\xff", 255), 1, strings.Repeat("\xff", 237) + ".conflict-7f3a"},
	} {
		got := conflictName(tt.name, "7f3a", tt.attempt)
		if len(got) > nameMax {
			t.Errorf("%q has %d bytes", got, len(got))
		}
		if tt.name[0] != '\xff' && got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
