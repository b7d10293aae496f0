// Package pattern has regular expressions that cost nothing until they are used. A package's variables are set up at
// each start of the binary, and it starts for every run: to compile some fifty expressions took longer than all else
// that a start does.
package pattern

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// Lazy gives a function that compiles an expression at its first call. It panics then if the text is none: in the
// binary of a test it is compiled at once, so that any test of a package finds out.
func Lazy(expr string) func() *regexp.Regexp {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
	if len(os.Args) > 0 && strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test") {
		compiled()
	}
	return compiled
}
