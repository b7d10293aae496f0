package sandbox

import "testing"

// SetRole adds to what this test binary does when it is executed by its tests: see roles.
func SetRole(name string, do func(args []string)) { roles[name] = do }

// Lacks is lacks, for tests outside of the package.
func Lacks(t *testing.T, what string, why any) {
	t.Helper()
	lacks(t, what, why)
}

// StartedAhead is startedAhead without what it prints.
const StartedAhead = `[ "$(tr -dc '\0' </proc/$$/cmdline | wc -c)" -gt 100 ]`
