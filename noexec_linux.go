package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// noExec reports whether the kernel executes nothing that lies in dir, or will once dir is made: its filesystem is
// mounted noexec. A mount for a run can't take that back.
func noExec(dir string) bool {
	dir = realPath(dir)
	for dir != filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Flags&unix.ST_NOEXEC != 0
}
