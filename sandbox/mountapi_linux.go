package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// What init needs of the kernel's mount API (Linux 5.12). mount(2) would do for some of it, but it
// takes paths where this takes descriptors, and one string of options where a path may hold a comma.

// What is said to have failed.
const (
	opOpenFilesystem   = "open filesystem"
	opCreateFilesystem = "create filesystem"
	opMountFilesystem  = "mount filesystem"
	opCloneMount       = "clone mount"
	opMountAttributes  = "set attributes of mount"
	opAttachMount      = "attach mount at"
	opPivot            = "pivot to"
)

// option is a parameter of a filesystem that is about to be mounted; a flag if value is empty.
type option struct{ key, value string }

// newMount makes a detached mount of a new filesystem. attrs are MOUNT_ATTR_*.
func newMount(fstype string, attrs int, options ...option) (*os.File, error) {
	ctx, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, setupError(opOpenFilesystem, fstype, err)
	}
	defer unix.Close(ctx)
	for _, o := range options {
		if o.value == "" {
			err = unix.FsconfigSetFlag(ctx, o.key)
		} else {
			err = unix.FsconfigSetString(ctx, o.key, o.value)
		}
		if err != nil {
			return nil, setupError("set "+o.key+" of filesystem", fstype, err)
		}
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return nil, setupError(opCreateFilesystem, fstype, err)
	}
	fd, err := unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return nil, setupError(opMountFilesystem, fstype, err)
	}
	return os.NewFile(uintptr(fd), fstype), nil
}

// cloneMount makes a detached copy of what is mounted at f and below it, with attrs added. Below a
// directory everything comes along: the kernel refuses to leave out what a less privileged user
// namespace inherited, since that would show what it covers.
func cloneMount(f *os.File, attrs uint64) (*os.File, error) {
	fd, err := unix.OpenTree(int(f.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return nil, setupError(opCloneMount, f.Name(), err)
	}
	clone := os.NewFile(uintptr(fd), f.Name())
	// Attributes are only added: those that the host set are locked in a user namespace.
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attrs}); err != nil {
		clone.Close()
		return nil, setupError(opMountAttributes, f.Name(), err)
	}
	return clone, nil
}

// attach puts a detached mount onto the place that an O_PATH descriptor names.
func attach(mount, at *os.File) error {
	err := unix.MoveMount(int(mount.Fd()), "", int(at.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	return setupError(opAttachMount, at.Name(), err)
}

// openPath opens an absolute path for nothing but to name it. No component may be a symbolic link: the
// caller resolved them, and one that is there now was put there since.
func openPath(p string) (*os.File, error) { return openPathAt(unix.AT_FDCWD, p, p) }

// openPathOf is openPath for a path of the root that host is.
func openPathOf(host *os.File, p string) (*os.File, error) {
	return openPathAt(int(host.Fd()), "."+p, p)
}

func openPathAt(dir int, relative, p string) (*os.File, error) {
	fd, err := unix.Openat2(dir, relative, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, setupError("open", p, err)
	}
	return os.NewFile(uintptr(fd), p), nil
}

// procPath names an open file where only a path is taken. It needs no escapes, whatever the file's own
// path holds.
func procPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// setupError returns nil for a nil err.
func setupError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	if pe := new(fs.PathError); errors.As(err, &pe) {
		err = pe.Err // op and path are said already
	}
	e := &SetupError{Op: op, Path: path, Err: err}
	switch {
	case errors.Is(err, unix.ENOSYS):
		e.Hint = "airlock needs the mount interface of Linux 5.12 (fsopen, open_tree, mount_setattr); the kernel is older, or a container's seccomp profile blocks it"
	case errors.Is(err, unix.ELOOP):
		e.Hint = "a symbolic link stands where a real path was expected; name the path that it leads to"
	}
	return e
}
