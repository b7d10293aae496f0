package overlay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// topOfHierarchies is EXT4_TOPDIR_FL of ext4, the T of chattr(1): what lies in the directories below this one is unrelated.
const topOfHierarchies = 0x20000

// spread has an ext4 without a journal keep the directories of runs apart from each other. Without one it does not give the number of a
// file to another for a minute after that was removed, or for five, and asks each number on its way again: runs, which each
// leave some 20 removed files in one group of the filesystem, took a millisecond longer each after some hundreds of them. It
// is a hint: where it can't be given everything is as it would be without.
func spread(dir *tree) {
	st, err := statAt(dir.fd, "")
	if err != nil || !withoutJournal("/sys", st.dev) {
		return
	}
	flags, err := unix.IoctlGetInt(dir.fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return
	}
	_ = unix.IoctlSetPointerInt(dir.fd, unix.FS_IOC_SETFLAGS, flags|topOfHierarchies)
}

// withoutJournal reports whether a device has an ext4 that is known to have no journal.
func withoutJournal(sys string, dev uint64) bool {
	device, err := os.Readlink(filepath.Join(sys, "dev/block", fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev))))
	if err != nil {
		return false
	}
	task, err := os.ReadFile(filepath.Join(sys, "fs/ext4", filepath.Base(device), "journal_task"))
	return err == nil && strings.TrimSpace(string(task)) == "<none>"
}
