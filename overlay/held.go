package overlay

// Held is what keeps a run that writes to the workspace itself (mode "direct") from the paths that a landing
// would withhold. There is no transaction: it holds only what existed when it was made.
type Held struct {
	// Layers are what has to be mounted, in this order for those of one depth.
	Layers []Layer
	// Protected are the paths that are read-only, relative to the workspace, in order.
	Protected []string
	// Links are protected paths that are links. Where one leads to in the workspace is read-only, but the link
	// itself can be replaced.
	Links []string
}

// Made names the protected paths that a later look found and this one did not: the run, or someone else
// meanwhile, made them.
func (h Held) Made(later Held) []string {
	known := map[string]bool{}
	for _, p := range h.Protected {
		known[p] = true
	}
	for _, p := range h.Links {
		known[p] = true
	}
	var made []string
	for _, list := range [][]string{later.Protected, later.Links} {
		for _, p := range list {
			if !known[p] {
				made = append(made, p)
			}
		}
	}
	return made
}
