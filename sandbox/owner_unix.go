//go:build unix

package sandbox

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the ids of a file's owner and group.
func ownerOf(fi fs.FileInfo) (uid, gid int) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, -1
	}
	return int(st.Uid), int(st.Gid)
}
