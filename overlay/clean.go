package overlay

// CleanOptions say what [Clean] removes, and where.
type CleanOptions struct {
	StateDir  string // as for [Open]
	Workspace string // a real path; "" is every workspace of the state directory
	History   bool   // what landings replaced; their records stay, unless the workspace is gone
	Scratch   bool   // what servers left behind that were killed
	DryRun    bool   // nothing is removed
}

// Cleaned is what [Clean] removed for one workspace, or would. Sizes are of disk, in bytes.
type Cleaned struct {
	Workspace string // its path; "" if the state directory doesn't say it
	Gone      bool   // there is no such directory any more
	Runs      int    // landings that can't be taken back from now on
	History   int64  // what was kept for them
	Servers   int    // servers that were killed
	Scratch   int64  // what they left
	Waiting   int    // runs that wait for review; they stay
	Kept      string // why nothing, or not everything, was removed; "" if everything was

	Foreign []Foreign // what another user's airlock keeps there, which stays
}

// Foreign is a directory of another user's.
type Foreign struct {
	Path  string
	Owner int // its uid
}

// CleanedCache is a cache of runs that [CleanCaches] emptied, or would, or found in use. An empty one is not told of.
type CleanedCache struct {
	Workspace string // its path
	Gone      bool   // there is no such workspace any more
	Bytes     int64  // of disk
	InUse     bool   // a run has it, and it was left as it is
}
