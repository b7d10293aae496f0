package sandbox

// Check is what was found out about one thing that the promises of a sandbox rest on. It is the material
// of "airlock doctor".
type Check struct {
	// Name is what was looked at: "user namespaces".
	Name string
	// Promise is what cannot be kept where it is missing, as half a sentence: "a run sees only what it
	// is given".
	Promise string
	// OK is true if it works here, because it was tried.
	OK bool
	// Detail is what was found: how it works, or why not, with the cause rather than the symptom.
	Detail string
	// Mend is what the person can do, possibly over several lines; "" if nothing is to be done or
	// known.
	Mend string
}
