package tools

import "golang.org/x/sys/unix"

// freeSpace is how many bytes may still be written to the filesystem of a directory.
func freeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Frsize, nil
}
