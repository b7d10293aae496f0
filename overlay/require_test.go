package overlay

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

var require = flag.String("require", "", "comma-separated list of what the host must offer: userns, overlay, disk (one of a file, to mount)")

// missing skips the test because the host does not offer something, or fails it where the flag says
// that it must.
func missing(t *testing.T, what string, err error) {
	t.Helper()
	if slices.Contains(strings.Split(*require, ","), what) {
		t.Fatalf("%s is required: %v", what, err)
	}
	t.Skipf("no %s here: %v", what, err)
}
