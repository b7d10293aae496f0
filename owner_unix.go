//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// ownerOf returns the ids of a file's owner and group.
func ownerOf(info fs.FileInfo) (uid, gid int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return os.Geteuid(), os.Getegid()
}
