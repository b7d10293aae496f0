package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// renameCall is one of the rename or link calls as the payload made it, before anything was read.
type renameCall struct {
	old, new pathArgument
	flags    uint32
	link     bool
}

// pathArgument is a path with the directory that it is relative to.
type pathArgument struct {
	dir     int32 // a descriptor of the caller's, or AT_FDCWD
	address uint64
}

// renameCallOf takes the arguments of a call apart. As in the kernel, of a descriptor and of flags only
// the low half counts.
func renameCallOf(name string, args [6]uint64) (c renameCall, ok bool) {
	switch name {
	case "rename":
		c.old = pathArgument{unix.AT_FDCWD, args[0]}
		c.new = pathArgument{unix.AT_FDCWD, args[1]}
		return c, true
	case "link":
		c.old = pathArgument{unix.AT_FDCWD, args[0]}
		c.new = pathArgument{unix.AT_FDCWD, args[1]}
		c.link = true
		return c, true
	case "linkat":
		c.old = pathArgument{int32(args[0]), args[1]}
		c.new = pathArgument{int32(args[2]), args[3]}
		c.flags, c.link = uint32(args[4]), true
		return c, true
	case "renameat", "renameat2":
		c.old = pathArgument{int32(args[0]), args[1]}
		c.new = pathArgument{int32(args[2]), args[3]}
		if name == "renameat2" {
			c.flags = uint32(args[4])
		}
		return c, true
	}
	return c, false
}

// notifiedName gives the name of the call that a notification is about; "" is none that was asked for.
func notifiedName(n notification) string {
	for _, r := range notified {
		if r.number(n.arch) == int(n.nr) {
			return r.name
		}
	}
	return ""
}

// pathReader reads paths from the memory of callers, with no more rights than one process of the run has
// over another: same user, and dumpable.
type pathReader struct{ buf [unix.PathMax]byte }

// read reads the path that ends with a zero byte. A path that is too long is ENAMETOOLONG.
func (r *pathReader) read(tid uint32, address uint64) (string, error) {
	page := uint64(os.Getpagesize())
	for have := 0; have < len(r.buf); {
		// A page at a time: the next one may not be there, and need not be.
		at := address + uint64(have)
		want := min(len(r.buf)-have, int(page-at%page))
		local := []unix.Iovec{{Base: &r.buf[have]}}
		local[0].SetLen(want)
		got, err := unix.ProcessVMReadv(int(tid), local, []unix.RemoteIovec{{Base: uintptr(at), Len: want}}, 0)
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(r.buf[have:have+got], 0); end >= 0 {
			return string(r.buf[:have+end]), nil
		}
		if got < want {
			return "", unix.EFAULT
		}
		have += got
	}
	return "", unix.ENAMETOOLONG
}

// base is the directory that a relative path of thread tid begins at. The link belongs to the kernel: the
// payload can't put another in its place.
func (p pathArgument) base(tid uint32) string {
	proc := "/proc/" + strconv.FormatUint(uint64(tid), 10)
	if p.dir == unix.AT_FDCWD {
		return proc + "/cwd"
	}
	return proc + "/fd/" + strconv.Itoa(int(p.dir))
}

// isDir reports whether a caller's path names a directory on one of devices. Where the path can't be
// looked at it says yes: whoever acts on the answer looks for itself.
func (p pathArgument) isDir(tid uint32, path string, devices map[uint64]bool) bool {
	return p.is(unix.S_IFDIR, tid, path, devices)
}

// isFile is isDir for a regular file.
func (p pathArgument) isFile(tid uint32, path string, devices map[uint64]bool) bool {
	return p.is(unix.S_IFREG, tid, path, devices)
}

func (p pathArgument) is(kind, tid uint32, path string, devices map[uint64]bool) bool {
	if path == "" {
		return false
	}
	if path[0] != '/' {
		path = p.base(tid) + "/" + path
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err == unix.ENAMETOOLONG // it may be the prefix that made it too long
	}
	return st.Mode&unix.S_IFMT == kind && devices[uint64(st.Dev)]
}

// open opens the directory that a caller's path lies in, and gives the last name, with a slash if the
// path ends with one. Links are followed as the kernel does for the caller, but for the magic links of
// /proc: those below /proc/self would lead to what is init's.
func (p pathArgument) open(tid uint32, path string) (entry, error) {
	parent, name, ok := splitPath(path)
	if !ok {
		return entry{}, unix.EINVAL
	}
	base := unix.AT_FDCWD
	if path[0] != '/' {
		fd, err := unix.Open(p.base(tid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return entry{}, err
		}
		defer unix.Close(fd)
		base = fd
	}
	fd, err := unix.Openat2(base, parent, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_MAGICLINKS,
	})
	return entry{fd, name}, err
}

// splitPath splits a path into the directory and the last name, which keeps one of the slashes behind it:
// they say that it has to be a directory. It reports false if the path doesn't end with a name ("", "/",
// "..").
func splitPath(path string) (parent, name string, ok bool) {
	trimmed := strings.TrimRight(path, "/")
	slash := strings.LastIndexByte(trimmed, '/')
	parent, name = trimmed[:slash+1], trimmed[slash+1:]
	if name == "" || name == "." || name == ".." {
		return "", "", false
	}
	if parent == "" {
		parent = "."
	}
	if len(trimmed) < len(path) {
		name += "/"
	}
	return parent, name, true
}
