package overlay

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// marks are what overlayfs noted on an entry of the upper layer.
type marks struct {
	copied   bool // copied up: the lower layer had the path when the run first changed it
	opaque   bool // a directory that hides everything below it in the lower layer
	xattrs   bool // an opaque="x" directory: empty files in it may be whiteouts
	whiteout bool // a whiteout in the form of an attribute
}

// overlayXattr returns the name of an attribute of overlayfs without its prefix.
//
// Two prefixes are read: ours is mounted with userxattr, but a layer could have been written by a
// mount without it. What a run itself set as user.overlay.X is stored as user.overlay.overlay.X.
func overlayXattr(name string) (string, bool) {
	if rest, ok := strings.CutPrefix(name, "user.overlay."); ok {
		return rest, true
	}
	return strings.CutPrefix(name, "trusted.overlay.")
}

var errRedirect = errors.New("the layer has an overlay redirect or metacopy attribute, which this mount cannot have made")

func redirectError(path string) error { return fmt.Errorf("%s: %w", Quote(path), errRedirect) }

// readMarks reads the marks of name in the directory fd of an upper layer. redirect is true where it has a
// mark that sends to another path or inode, which nothing here follows.
func readMarks(fd int, name string) (m marks, redirect bool, err error) {
	// A name below a descriptor has no other link to follow, and the last is not followed.
	path := "/proc/self/fd/" + strconv.Itoa(fd) + "/" + name
	names, err := xattrNames(path, unix.Llistxattr)
	if err != nil {
		return marks{}, false, err
	}
	for _, n := range names {
		x, ok := overlayXattr(n)
		if !ok {
			continue
		}
		switch x {
		case "origin":
			m.copied = true
		case "opaque":
			value, err := xattrValue(path, n, unix.Lgetxattr)
			if err != nil {
				return marks{}, false, err
			}
			m.opaque, m.xattrs = string(value) == "y", string(value) == "x"
		case "whiteout":
			m.whiteout = true
		case "redirect", "metacopy":
			redirect = true
		}
	}
	return m, redirect, nil
}

// xattrNames lists the attributes of path; a filesystem without attributes has none.
func xattrNames(path string, list func(string, []byte) (int, error)) ([]string, error) {
	buf := make([]byte, 512)
	for {
		n, err := retry(func() (int, error) { return list(path, buf) })
		switch {
		case err == unix.ERANGE:
			buf = make([]byte, 64<<10) // XATTR_LIST_MAX
			continue
		case err == unix.ENOTSUP:
			return nil, nil
		case err != nil:
			return nil, err
		}
		return strings.FieldsFunc(string(buf[:n]), func(r rune) bool { return r == 0 }), nil
	}
}

// xattrValue reads one attribute; nil is one that went meanwhile.
func xattrValue(path, name string, get func(string, string, []byte) (int, error)) ([]byte, error) {
	buf := make([]byte, 256)
	for {
		n, err := retry(func() (int, error) { return get(path, name, buf) })
		switch {
		case err == unix.ERANGE:
			buf = make([]byte, 64<<10) // XATTR_SIZE_MAX
			continue
		case err == unix.ENODATA:
			return nil, nil
		case err != nil:
			return nil, err
		}
		return bytes.Clone(buf[:n]), nil
	}
}

// userXattrs returns the user attributes of an open file that are not overlayfs's.
func userXattrs(fd uintptr) (map[string]string, error) {
	path := "/proc/self/fd/" + strconv.Itoa(int(fd))
	names, err := xattrNames(path, unix.Listxattr)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, n := range names {
		if _, ours := overlayXattr(n); ours || !strings.HasPrefix(n, "user.") {
			continue
		}
		value, err := xattrValue(path, n, unix.Getxattr)
		if err != nil {
			return nil, err
		}
		found[n] = string(value)
	}
	return found, nil
}

// equalXattrs reports whether two open files have the same user attributes.
func equalXattrs(a, b uintptr) (bool, error) {
	x, err := userXattrs(a)
	if err != nil {
		return false, err
	}
	y, err := userXattrs(b)
	return maps.Equal(x, y), err
}

// stripXattrs removes from path (a name under /proc/self/fd, which is followed) what must not
// travel: overlayfs's own attributes, which a later mount would obey, and capabilities. It reports
// whether there were capabilities.
func stripXattrs(path string) (capabilities bool, err error) {
	names, err := xattrNames(path, unix.Listxattr)
	if err != nil {
		return false, err
	}
	for _, n := range names {
		_, ours := overlayXattr(n)
		caps := n == "security.capability"
		if !ours && !caps {
			continue
		}
		if err := unix.Removexattr(path, n); err != nil && err != unix.ENODATA {
			return false, err
		}
		capabilities = capabilities || caps
	}
	return capabilities, nil
}
