package sandbox

import "os"

// The names under which the binary executes itself: the whole argv, so that ps shows no paths.
const (
	initName    = "airlock-init"
	janitorName = "airlock-janitor"
	starterName = "airlock-starter"
	checkName   = "airlock-check"
)

// A backend that isolates executes its own binary again, as the init process of a run, as the process that starts
// those, as the one that clears up after a server that was killed, and to try what a host allows. Such a process does its work here
// and never gets to main, nor to the initialisation of the packages that come after this one: a server links
// some whose tables take longer to set up than a run takes.
func init() {
	if len(os.Args) == 0 {
		return
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
	case starterName:
		starterMain()
	case checkName:
		checkMain()
	default:
		return
	}
	os.Exit(0)
}
