package overlay

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestUnified: applying the edits to one text gives the other, for texts of few different lines.
func TestUnified(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() (lines [][]byte) {
		for range r.IntN(40) {
			lines = append(lines, []byte{'a' + byte(r.IntN(4)), '\n'})
		}
		return lines
	}
	for range 2000 {
		x, y := text(), text()
		i, j := 0, 0
		for _, e := range editScript(x, y) {
			if e.a >= 0 && e.a != i || e.b >= 0 && e.b != j {
				t.Fatalf("out of order: %q %q: %v", x, y, editScript(x, y))
			}
			if e.a >= 0 && e.b >= 0 && string(x[i]) != string(y[j]) {
				t.Fatalf("lines %d and %d are not equal", i, j)
			}
			if e.a >= 0 {
				i++
			}
			if e.b >= 0 {
				j++
			}
		}
		if i != len(x) || j != len(y) {
			t.Fatalf("ends at %d of %d, %d of %d", i, len(x), j, len(y))
		}
	}
}

// TestUnifiedBounded: files that have nothing in common are not searched for long.
func TestUnifiedBounded(t *testing.T) {
	a, b := strings.Repeat("a\n", 50_000), strings.Repeat("b\n", 50_000)
	var out strings.Builder
	unified(&out, []byte(a), []byte(b))
	if got := strings.Count(out.String(), "\n"); got != 100_001 {
		t.Errorf("%d lines", got)
	}
}
