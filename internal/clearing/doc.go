// Package clearing removes what runs and installations left, whose owner airlock is, whatever the modes, names and depth of
// the directories in it: it follows no link, and needs no path longer than a name. It does not stand up to somebody who changes
// the tree meanwhile, nor does it remove what is another user's. It is a leaf: it imports nothing of airlock.
//
// On systems that are not Linux, where nothing isolated has written what is removed, depth is bounded by the length of a path.
package clearing
