package runcache

// Cleaned is a cache that [Clean] emptied, or would, or found in use. An empty one is not told of.
type Cleaned struct {
	Workspace string
	Gone      bool  // there is no such workspace any more
	Bytes     int64 // of disk
	InUse     bool  // a run has it, and it was left as it is
}
