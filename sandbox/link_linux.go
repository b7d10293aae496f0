package sandbox

import "golang.org/x/sys/unix"

// link is link(2) on an overlay, and the new name has the inode number that the old one had. An ordinary user's
// overlay can't look up where a file of its upper layer came from (that takes CAP_DAC_READ_SEARCH on the host).
// So a file that has lain in the lower layer keeps the number that it had there under the name by which the
// kernel remembers it, and every other name of it has the upper file's. git looks whether what it linked is what
// it saw before, and gives up: "hardlink different from source".
//
// So the remembered name becomes the new one, and the old name is made anew as a link of it. All are names of
// one upper file, and who has it open goes on with it; but for a moment the old name is missing, and the two
// have different numbers from now on.
func (m *mover) link(old, other entry) unix.Errno {
	var was, made unix.Stat_t
	err := unix.Fstatat(old.dir, old.name, &was, unix.AT_SYMLINK_NOFOLLOW)
	if err := unix.Linkat(old.dir, old.name, other.dir, other.name, 0); err != nil {
		return errnoOf(err) // the kernel's own checks come first
	}
	if err != nil || unix.Fstatat(other.dir, other.name, &made, unix.AT_SYMLINK_NOFOLLOW) != nil || was.Ino == made.Ino ||
		was.Dev != made.Dev || was.Mode&unix.S_IFMT != unix.S_IFREG || made.Nlink != 2 {
		return 0
	}
	times, err := timesOf(old.dir)
	if err != nil || unix.Unlinkat(other.dir, other.name, 0) != nil {
		return 0
	}
	if m.calls.rename(old, other, unix.RENAME_NOREPLACE) != nil {
		// A directory in which the user may not write. Links are made from there all the same.
		return errnoOf(unix.Linkat(old.dir, old.name, other.dir, other.name, 0))
	}
	if err := unix.Linkat(other.dir, other.name, old.dir, old.name, 0); err != nil {
		return errnoOf(m.undone(err, m.calls.rename(other, old, unix.RENAME_NOREPLACE)))
	}
	// Whoever links out of a directory doesn't change it.
	_ = unix.UtimesNanoAt(unix.AT_FDCWD, ownFD(old.dir), times, 0)
	return 0
}

// timesOf gives the times of a directory.
func timesOf(dir int) ([]unix.Timespec, error) {
	var st unix.Stat_t
	err := unix.Fstat(dir, &st)
	return []unix.Timespec{st.Atim, st.Mtim}, err
}
