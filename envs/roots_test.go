package envs

import (
	"slices"
	"testing"
)

// A requirement takes the place of earlier ones for its package, and leaves none of their extras out.
func TestMergeRoots(t *testing.T) {
	asked, err := parseAll([]string{"six[b]>=1.16", "new"})
	if err != nil {
		t.Fatal(err)
	}
	got := mergeRoots(LanguagePython, []string{"other[x]", "six[c,a]<2", "six>1"}, asked)
	if want := []string{"other[x]", "six[a,b,c]>=1.16", "new"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !slices.Equal(asked[0].Extras, []string{"b"}) {
		t.Errorf("what was asked for became %v", asked[0])
	}
}
