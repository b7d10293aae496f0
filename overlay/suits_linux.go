package overlay

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What has to be true of a directory that layers, or landings, are to lie in: each of it is tried.

// holdsLayers tries whether a directory takes what overlayfs leaves in an upper layer: whiteouts, and
// attributes of the user class. It says nothing of what overlayfs needs beside that.
func holdsLayers(dir, _ *tree) error {
	const name = ".airlock-whiteout"
	if err := unix.Mknodat(dir.fd, name, unix.S_IFCHR, 0); err != nil {
		return dir.fail("make whiteout", name, err)
	}
	if err := unix.Unlinkat(dir.fd, name, 0); err != nil {
		return dir.fail("remove", name, err)
	}
	const attribute = "user.overlay.origin"
	if err := unix.Fsetxattr(dir.fd, attribute, nil, 0); err != nil {
		return dir.fail("set attribute of", "", err)
	}
	return dir.fail("remove attribute of", "", unix.Fremovexattr(dir.fd, attribute))
}

// sameFilesystem proves by doing it that a rename from one directory to the other works: device
// numbers don't tell (bind mounts, subvolumes, project quotas).
func sameFilesystem(from, to *tree) error {
	name := fmt.Sprintf("%s%d-%x", probePrefix, os.Getpid(), from.fd)
	before, err := statAt(to.fd, "")
	if err != nil {
		return err
	}
	fd, err := unix.Openat(from.fd, name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return from.fail("create", name, err)
	}
	unix.Close(fd)
	defer unix.Unlinkat(from.fd, name, 0)
	err = unix.Renameat2(from.fd, name, to.fd, name, unix.RENAME_NOREPLACE)
	if err == unix.EACCES || err == unix.EROFS || err == unix.EPERM {
		// The root of the workspace takes no new names, which says nothing of what is below. The
		// kernel compares mounts before it looks for the file.
		err = unix.Renameat2(from.fd, name+"-none", to.fd, name, unix.RENAME_NOREPLACE)
		if err == unix.ENOENT {
			return nil
		}
	}
	if err != nil {
		return to.fail("rename from "+from.path+" to", "", err)
	}
	if err := unix.Unlinkat(to.fd, name, 0); err != nil {
		return to.fail("remove", name, err)
	}
	// Nothing changed there, as far as anyone who compares times is concerned.
	_ = unix.UtimesNanoAt(unix.AT_FDCWD, procName(to.fd), before.mtime.alone(), 0)
	return nil
}

// reachable reports whether a process of the user gets to a directory, by the modes on the way.
func reachable(path string, uid uint32) error {
	for {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return &os.PathError{Op: "stat", Path: path, Err: err}
		}
		if st.Mode&0o001 == 0 && (st.Uid != uid || st.Mode&0o100 == 0) {
			return fmt.Errorf("%s is closed to uid %d, who owns the workspace", path, uid)
		}
		if path == "/" {
			return nil
		}
		path = filepath.Dir(path)
	}
}
