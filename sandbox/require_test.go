package sandbox

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

var required = flag.String("require", "", "what this host must offer, separated by commas: a test that finds it missing fails instead of being skipped (userns, overlay, cgroup, memory, bwrap, controls, landlock)")

// lacks is called by a test that has tried something and found that this host does not offer it.
func lacks(t *testing.T, what string, why any) {
	t.Helper()
	if slices.Contains(strings.Split(*required, ","), what) {
		t.Fatalf("this host lacks %s, which -require names: %v", what, why)
	}
	t.Skipf("this host lacks %s: %v", what, why)
}
