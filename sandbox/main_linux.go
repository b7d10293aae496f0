package sandbox

import "os"

// The names under which the binary executes itself: the whole argv, so that ps shows no paths.
const (
	initName    = "airlock-init"
	janitorName = "airlock-janitor"
	checkName   = "airlock-check"
)

// Main must be called first by the main function of a program that uses a backend which isolates, and by
// TestMain: such a backend executes its own binary again as the init process of a run, as the process that
// clears up after a server that was killed, and to try what a host allows. In these Main does the work
// and never returns; in any other process it returns false at once. It looks at argv alone.
func Main() (handled bool) {
	if len(os.Args) == 0 {
		return false
	}
	name := os.Args[0]
	if isWrappedInit(os.Args) {
		name = initName
	}
	switch name {
	case initName:
		initMain()
	case janitorName:
		janitorMain()
	case checkName:
		checkMain()
	default:
		return false
	}
	return true
}
