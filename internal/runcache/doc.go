// Package runcache keeps what the runs of one workspace have as ~/.cache: the caches of compilers and package
// managers, which make a second build warm.
//
// # What an attacker controls
//
// Everything below files/: names, links, modes, sizes, how many there are. It was written by runs and is
// never executed, read or followed here: it is measured and removed, below descriptors that lead through no
// link. What one run plants there the next runs of the same workspace meet, and nobody else.
//
// # On disk
//
//	caches/ID/            ID is a digest of the workspace's real path
//	    workspace         that path, so that a cache whose workspace is gone can be told
//	    lock              shared while a run has it, exclusive while something is removed
//	    size              what files/ took at the last measure
//	    files/            what runs see, with mode 0700
//	    trash/            what is being removed
//
// # Bounds
//
// A cache that is larger than its limit loses whole directories of its first level, the largest first, before
// the next run that has it for itself: a program's cache of which single files are missing may be
// worse than none. While runs go on the caller bounds what they add, by [Cache.Grown].
package runcache
