// Package filelock has locks between processes, by flock(2) on a file.
//
// A lock is held through an open file, so that it counts within one process too, and that the kernel gives it back when its
// holder dies. Whoever holds one alone may remove its file, or the directory that it is in: who waits for it then finds
// out, and makes the file anew.
package filelock

import "errors"

// Mode says who else may have a lock.
type Mode int

const (
	// Alone is for one holder.
	Alone Mode = iota
	// Shared is for any number that hold it so.
	Shared
)

// ErrHeld is what [Try] returns where somebody else holds the lock.
var ErrHeld = errors.New("somebody else holds it")
