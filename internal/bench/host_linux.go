package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// describeHost says on what the figures were taken: they mean nothing without.
func describeHost(dir string) (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("uname: %w", err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return "", fmt.Errorf("statfs %s: %w", dir, err)
	}
	name, ok := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
		unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
	}[int64(fs.Type)]
	if !ok {
		name = fmt.Sprintf("filesystem type %#x", fs.Type)
	}
	return fmt.Sprintf("Linux %s %s, %d CPUs, workspace on %s, uid %d, %s", unix.ByteSliceToString(u.Release[:]),
		runtime.GOARCH, runtime.NumCPU(), name, unix.Getuid(), runtime.Version()), nil
}
