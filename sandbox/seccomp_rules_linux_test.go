//go:build linux && (amd64 || arm64)

package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A wrong number would refuse an innocent call and let the meant one through.
func TestRulesHaveTheKernelsNumbers(t *testing.T) {
	rules, headers := nativeNumbers()
	if diff := cmp.Diff(headers, rules); diff != "" {
		t.Errorf("numbers in the rules (-headers +rules):\n%s", diff)
	}
}
