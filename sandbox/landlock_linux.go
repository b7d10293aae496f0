package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wall is a second wall around the payload, by Landlock, for the day on which there is a hole in the first. The mounts say
// already that only what is named can be written. The wall says so once more, to another part of the kernel, which
// looks at paths and knows nothing of the flags of mounts:
//
//   - everything below the root may be read and executed, since the root holds nothing that a run may not see;
//   - the private tmpfs with its faces, overlays that have a layer and writable binds may be written in any way, and
//     renames and links may cross directories there (without that right Landlock forbids it everywhere);
//   - files in /proc may be written, a process's own are there, and those in /dev, whose terminals take ioctl(2) as well;
//   - signals and connections to abstract sockets reach only who is inside too (Linux 6.12);
//   - a socket in a directory can be connected to only if it is the run's own (7.1), or if a bind shows just that.
//
// Inside are the payload and the thread that forks it. Init's threads that rename for it are not: the kernel makes them all
// different, and lets nobody inside of one look at a process inside of another. Those threads act on the directories of
// overlays alone, which the wall lets the payload write in any case.
type wall struct {
	ruleset int
	abi     int
	handled uint64 // the rights that it is asked about; all others it does not know
}

// What may be done below a place, in the kernel's words.
const (
	landlockRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockFiles = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	landlockWrite = landlockFiles | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK // the seccomp filter's to refuse
	landlockDevice  = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	landlockConnect = unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	// What the kernel takes in a rule on something that is no directory.
	landlockOfFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | landlockFiles |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | landlockConnect
)

// minLandlock is the first version with which renames between directories can be allowed at all (Linux 5.19).
const minLandlock = 2

// handledBy is what a version of Landlock knows of the rights and scopes above.
func handledBy(abi int) unix.LandlockRulesetAttr {
	a := unix.LandlockRulesetAttr{Handled_access_fs: landlockRead | landlockWrite&^unix.LANDLOCK_ACCESS_FS_TRUNCATE}
	if abi >= 3 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if abi >= 9 {
		a.Handled_access_fs |= landlockConnect
	}
	return a
}

// landlockABI is the version of this kernel's Landlock; 0 if it has none, or none that is on.
func landlockABI() int {
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(r)
}

// newWall prepares the wall for the skeleton; nil where this kernel can't make one. That is no
// reason not to run: nothing is promised that rests on it alone.
func newWall() (*wall, error) {
	abi := landlockABI()
	if abi < minLandlock {
		return nil, nil
	}
	attr := handledBy(abi)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, setupError("create Landlock ruleset", "", errno)
	}
	w := &wall{ruleset: int(fd), abi: abi, handled: attr.Handled_access_fs}
	return w, w.allow(skeletonRules)
}

// add prepares the wall for what the steps have built.
func (w *wall) add(steps []step) error { return w.allow(wallRules(steps)) }

// wallRule allows rights below a path, or on the file that it is.
type wallRule struct {
	path   string
	rights uint64
}

// skeletonRules are those for what every run has.
var skeletonRules = []wallRule{
	{"/", landlockRead},
	{"/proc", landlockFiles},
	{"/dev", landlockDevice},
}

// wallRules is pure.
func wallRules(steps []step) (rules []wallRule) {
	for _, st := range steps {
		switch {
		case st.Do == doShow, st.Do == doOverlay && st.Upper != "", st.Do == doBind && st.Writable:
			rules = append(rules, wallRule{string(st.Target), landlockWrite})
		case st.Do == doBind:
			rules = append(rules, wallRule{string(st.Target), 0}) // may be a socket
		}
	}
	return rules
}

// allow adds rules. A nil wall needs none.
func (w *wall) allow(rules []wallRule) error {
	if w == nil {
		return nil
	}
	for _, r := range rules {
		if err := w.allowAt(r.path, r.rights&w.handled); err != nil {
			return err
		}
	}
	return nil
}

// allowAt adds a rule. What an optional step left out has none.
func (w *wall) allowAt(path string, rights uint64) error {
	f, err := openPath(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return setupError("look at", path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFSOCK:
		if w.abi >= 9 {
			rights |= landlockConnect
		}
		rights &= landlockOfFile
	default:
		rights &= landlockOfFile
	}
	if rights == 0 {
		return nil
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(f.Fd())}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(w.ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return setupError("allow by Landlock", path, errno)
	}
	return nil
}

// enclose puts the calling thread, and what it will fork, behind the wall for good. It must have no_new_privs, and must not
// be under a filter yet whose listener takes this call for the payload's.
func (w *wall) enclose() error {
	if w == nil {
		return nil
	}
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(w.ruleset), 0, 0)
	if errno != 0 {
		return fmt.Errorf("restrict by Landlock: %w", errno)
	}
	w.close()
	return nil
}

// close lets go of the ruleset.
func (w *wall) close() {
	if w != nil {
		unix.Close(w.ruleset)
	}
}
