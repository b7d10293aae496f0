package main

import (
	"strings"
	"testing"
)

func TestTooDeep(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1)
	for text, want := range map[string]int{
		"":                                     0,
		"a = " + strings.Repeat("[", maxDepth): 0,
		"a = " + deep:                          1,
		"\n\na = " + deep:                      3,
		"a = " + strings.Repeat("{ a = ", maxDepth+1): 1,
		"a" + strings.Repeat(".a", maxDepth) + " = 1": 0,
		"a" + strings.Repeat(".a", maxDepth+1):        1,
		strings.Repeat("a.b.c = 1.5\n", 20):           0,
		strings.Repeat("a = [1, 2]\n", 20):            0,
		"# " + deep:                                   0,
		"# " + deep + "\nb = " + deep:                 2,
		`a = "` + deep + `"`:                          0,
		`a = "\"` + deep + `"`:                        0,
		`a = "\\" ` + deep:                            1,
		`a = '` + deep + `'`:                          0,
		`a = '\' ` + deep:                             1,
		"a = \"" + "\n" + deep:                        2, // not closed: an error of its own, but no hiding place
		"a = \"\"\"\n\"" + deep + "\"\"\"":            0,
		"a = \"\"\"\n\"\"\"\"\"" + deep:               2,
		"a = '''\n" + deep + "'''":                    0,
		"a = ''''''" + deep:                           1,
		"a = \"\" " + deep:                            1,
		"a = '" + deep:                                0,
	} {
		if got := tooDeep([]byte(text)); got != want {
			t.Errorf("%q goes too deep on line %d, want %d", text, got, want)
		}
	}
}
