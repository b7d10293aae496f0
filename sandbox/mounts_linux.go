package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// builder executes a plan, in init, whose mount namespace is its own: first the base, then, once there is a run, the rest.
type builder struct {
	host       handle // the host's root, until it is left
	src        *sources
	mounts     map[int]handle // those of the steps that are being done
	scratch    handle         // root of the private tmpfs
	rootDev    uint64
	scratchDev uint64
	files      int // MountFile contents stored so far
}

// What is in the root while the sandbox is built, and not afterwards.
const (
	scratchPath = "/.scratch" // the private tmpfs
	hostPath    = "/.host"    // the host's root, until the private tmpfs has a place for it

	// What masks show, each mounted on itself, read-only.
	emptyPath = scratchPath + "/empty"
	nonePath  = scratchPath + "/none"
)

// newBuilder makes the new root, enters it and builds the base of what the run sees.
func newBuilder(base []step) (*builder, error) {
	host, err := openPath("/")
	if err != nil {
		return nil, err
	}
	b := &builder{host: host}
	if b.src, err = openSources(host); err != nil {
		return nil, err
	}
	if b.rootDev, err = deviceOf(b.src.root); err != nil {
		return nil, err
	}
	mounts, err := openSteps(host, base)
	if err != nil {
		return nil, err
	}
	if err := enterRoot(b.src.root); err != nil {
		return nil, err
	}
	b.src.root.Close()
	return b, b.build(base, mounts)
}

// finish builds the rest. The host's root, in which no path is looked up any more then, goes with the seal.
func (b *builder) finish(rest []step) error {
	if len(rest) == 0 || rest[len(rest)-1].Do != doSeal {
		return errors.New("sandbox: bug: a plan without a seal, which would leave the host's root within reach")
	}
	mounts, err := openSteps(b.host, rest)
	if err != nil {
		return err
	}
	b.host.Close()
	return b.build(rest, mounts)
}

// build executes steps, for which mounts were made.
func (b *builder) build(steps []step, mounts map[int]handle) error {
	// The modes that are asked for are the modes that are meant.
	old := unix.Umask(0)
	defer unix.Umask(old)
	b.mounts = mounts
	for i, st := range steps {
		if err := b.do(i, st); err != nil {
			return err
		}
	}
	return nil
}

// enterRoot makes root the root of this namespace and puts the host's into a directory of it. The new root covers the
// old one for a moment, since no directory of the host is sure to be there to be mounted on.
func enterRoot(root handle) error {
	over, err := openPath("/")
	if err != nil {
		return err
	}
	defer over.Close()
	if err := attach(root, over); err != nil {
		return err
	}
	if err := unix.Fchdir(root.fd); err != nil {
		return setupError("enter", "new root", err)
	}
	if err := unix.Mkdir("."+hostPath, 0o700); err != nil {
		return setupError("make", hostPath, err)
	}
	if err := unix.PivotRoot(".", "."+hostPath); err != nil {
		return setupError(opPivot, "new root", err)
	}
	return setupError("enter", "/", unix.Chdir("/"))
}

// do executes one step and lets go of what was held for it.
func (b *builder) do(i int, st step) error {
	target := string(st.Target)
	switch st.Do {
	case doScratch:
		return b.mountScratch(st.Size)
	case doProc:
		return b.mountProc()
	case doDev:
		return b.makeDev()
	case doShow:
		return b.show(st)
	case doDir:
		f, err := b.place(target, placeDir)
		if err != nil {
			return err
		}
		defer f.Close()
		return setupError("set mode of", target, os.Chmod(procPath(f), fs.FileMode(st.Mode)))
	case doBind, doOverlay:
		mount, ok := b.mounts[i]
		if !ok {
			return nil // an optional one
		}
		defer mount.Close()
		return b.mountAt(mount, target)
	case doSymlink:
		return b.symlink(string(st.Source), target)
	case doFile:
		return b.file(st)
	case doMask:
		return b.mask(target)
	case doSeal:
		return b.seal()
	}
	return fmt.Errorf("sandbox: bug: a step %q", st.Do)
}

// mountScratch mounts the private tmpfs. size is in bytes; 0 leaves the kernel's default, half of the
// memory.
func (b *builder) mountScratch(size int64) error {
	options := []option{{"mode", "0755"}}
	if size > 0 {
		// An inode takes kernel memory that the size doesn't count.
		options = append(options,
			option{"size", strconv.FormatInt(size, 10)},
			option{"nr_inodes", strconv.FormatInt(max(size/4096, 4096), 10)})
	}
	mount, err := newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, options...)
	if err != nil {
		return err
	}
	if b.scratchDev, err = deviceOf(mount); err != nil {
		return err
	}
	if err := b.mountAt(mount, scratchPath); err != nil {
		return err
	}
	b.scratch = mount
	if err := unix.Mkdirat(mount.fd, "empty", 0o555); err != nil {
		return setupError("make", emptyPath, err)
	}
	if err := unix.Mknodat(mount.fd, "none", unix.S_IFREG, 0); err != nil {
		return setupError("make", nonePath, err)
	}
	// Whatever is made of these is read-only, because they are.
	return errors.Join(
		b.bindInside(emptyPath, emptyPath, unix.MOUNT_ATTR_RDONLY),
		b.bindInside(nonePath, nonePath, unix.MOUNT_ATTR_RDONLY),
		b.moveHost(),
	)
}

// moveHost puts the host's root below the private tmpfs, so that both can be taken away at once: while a run waits, each
// unmounting waits for all processors.
func (b *builder) moveHost() error {
	const name = "host"
	if err := unix.Mkdirat(b.scratch.fd, name, 0o700); err != nil {
		return setupError("make", scratchPath+"/"+name, err)
	}
	if err := unix.MoveMount(unix.AT_FDCWD, hostPath, b.scratch.fd, name, 0); err != nil {
		return setupError("move", "the host's root", err)
	}
	return setupError("remove", hostPath, unix.Rmdir(hostPath))
}

// show makes a directory in the private tmpfs and shows it at a place of its own.
func (b *builder) show(st step) error {
	name := path.Join(scratchPath, string(st.Source))
	if err := unix.Mkdir(name, st.Mode); err != nil {
		return setupError("make", name, err)
	}
	return b.bindInside(name, string(st.Target), 0)
}

// bindInside shows something that is already in the new root at another place as well.
func (b *builder) bindInside(source, target string, attrs uint64) error {
	f, err := openPath(source)
	if err != nil {
		return err
	}
	defer f.Close()
	mount, err := cloneMount(f, attrs)
	if err != nil {
		return err
	}
	defer mount.Close()
	return b.mountAt(mount, target)
}

func (b *builder) mountAt(mount handle, target string) error {
	dir, err := isDir(mount)
	if err != nil {
		return err
	}
	at, err := b.place(target, placeKind(dir))
	if err != nil {
		return err
	}
	defer at.Close()
	return attach(mount, at)
}

// symlink makes a link, unless the same one is there already because the directory that holds it is
// shown.
func (b *builder) symlink(text, target string) error {
	dir, err := b.place(path.Dir(target), placeDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = unix.Symlinkat(text, dir.fd, path.Base(target))
	if err == nil {
		return nil
	}
	if there, e := os.Readlink(procPath(dir) + "/" + path.Base(target)); e == nil && there == text {
		return nil
	}
	return setupError("make link", target, err)
}

// file shows content at a place. The file is kept in the private tmpfs and mounted read-only, so that
// it is as immutable below /home as it is in /etc.
func (b *builder) file(st step) error {
	name := path.Join(scratchPath, "file-"+strconv.Itoa(b.files))
	b.files++
	if err := writeFile(name, []byte(st.Content), unix.O_CREAT, 0o444); err != nil {
		return setupError("write", string(st.Target), err)
	}
	return b.bindInside(name, string(st.Target), unix.MOUNT_ATTR_RDONLY)
}

// mask hides what is at target. Where nothing is, nothing has to be hidden.
func (b *builder) mask(target string) error {
	f, err := openPath(target)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	dir, err := isDir(f)
	if err != nil {
		return err
	}
	if dir {
		return b.bindInside(emptyPath, target, unix.MOUNT_ATTR_RDONLY)
	}
	return b.bindInside(nonePath, target, unix.MOUNT_ATTR_RDONLY)
}

// seal takes away what was needed to build, leaves the host's root for good with it, and makes the root read-only.
func (b *builder) seal() error {
	if err := unix.Unmount(scratchPath, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return setupError("unmount", scratchPath, err)
	}
	b.scratch.Close()
	if err := unix.Rmdir(scratchPath); err != nil {
		return setupError("remove", scratchPath, err)
	}
	err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	return setupError("make read-only", "/", err)
}
