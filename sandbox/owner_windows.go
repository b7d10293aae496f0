package sandbox

import "io/fs"

// ownerOf returns -1: files have no such owner here.
func ownerOf(fs.FileInfo) (uid, gid int) { return -1, -1 }
