package sandbox

import (
	"errors"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// What init needs of the kernel's mount API (Linux 5.12). mount(2) would do for some of it, but it
// takes paths where this takes descriptors, and one string of options where a path may hold a comma. (What is locked in /proc
// is, by paths that nobody but the kernel makes.)

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
func newMount(fstype string, attrs int, options ...option) (handle, error) {
	ctx, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return handle{}, setupError(opOpenFilesystem, fstype, err)
	}
	defer unix.Close(ctx)
	for _, o := range options {
		if o.value == "" {
			err = unix.FsconfigSetFlag(ctx, o.key)
		} else {
			err = unix.FsconfigSetString(ctx, o.key, o.value)
		}
		if err != nil {
			return handle{}, setupError("set "+o.key+" of filesystem", fstype, err)
		}
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return handle{}, setupError(opCreateFilesystem, fstype, err)
	}
	fd, err := unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return handle{}, setupError(opMountFilesystem, fstype, err)
	}
	return handle{fd, fstype}, nil
}

// cloneMount makes a detached copy of what is mounted at f and below it, with attrs added. Below a
// directory everything comes along: the kernel refuses to leave out what a less privileged user
// namespace inherited, since that would show what it covers.
func cloneMount(f handle, attrs uint64) (handle, error) {
	fd, err := unix.OpenTree(f.fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return handle{}, setupError(opCloneMount, f.path, err)
	}
	clone := handle{fd, f.path}
	// Attributes are only added: those that the host set are locked in a user namespace.
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attrs}); err != nil {
		clone.Close()
		return handle{}, setupError(opMountAttributes, f.path, err)
	}
	return clone, nil
}

// attach puts a detached mount onto the place that an O_PATH descriptor names.
func attach(mount, at handle) error {
	err := unix.MoveMount(mount.fd, "", at.fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	return setupError(opAttachMount, at.path, err)
}

// openPath opens an absolute path for nothing but to name it. No component may be a symbolic link: the
// caller resolved them, and one that is there now was put there since.
func openPath(p string) (handle, error) { return openPathAt(unix.AT_FDCWD, p, p) }

// openPathOf is openPath for a path of the root that host is.
func openPathOf(host handle, p string) (handle, error) {
	return openPathAt(host.fd, "."+p, p)
}

func openPathAt(dir int, relative, p string) (handle, error) {
	fd, err := unix.Openat2(dir, relative, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return handle{}, setupError("open", p, err)
	}
	return handle{fd, p}, nil
}

// procPath names an open file where only a path is taken. It needs no escapes, whatever the file's own
// path holds.
func procPath(f handle) string { return "/proc/self/fd/" + strconv.Itoa(f.fd) }

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
