package overlay

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"

	"golang.org/x/sys/unix"
)

// marks are what overlayfs noted on an entry of the upper layer.
type marks struct {
	copied   bool // copied up: the lower layer had the path when the run first changed it
	opaque   bool // a directory that hides everything below it in the lower layer
	xattrs   bool // an opaque="x" directory: empty files in it may be whiteouts
	whiteout bool // a whiteout in the form of an attribute

	acl   bool     // it has an access control list
	strip []string // its attributes that must not land, but for what the kernel gave it: see given
}

const (
	security    = "security." // what begins so is for the kernel's security modules, and is read by them
	capability  = security + "capability"
	accessList  = "system.posix_acl_access"
	defaultList = "system.posix_acl_default" // of a directory, for what is made in it
)

// ofSecurity reports whether an attribute is a security module's.
func ofSecurity(name string) bool { return strings.HasPrefix(name, security) }

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
	path := procName(fd) + "/" + name
	names, err := xattrNames(path, unix.Llistxattr)
	if err != nil {
		return marks{}, false, err
	}
	for _, n := range names {
		x, ok := overlayXattr(n)
		switch {
		case n == accessList:
			m.acl = true
		case ok || ofSecurity(n):
			m.strip = append(m.strip, n)
		}
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

// ownXattrs returns what someone can set of an open file's attributes: those of the user class that are not
// overlayfs's, and the access control list.
func ownXattrs(fd uintptr) (map[string]string, error) {
	path := procName(int(fd))
	names, err := xattrNames(path, unix.Listxattr)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, n := range names {
		if _, ours := overlayXattr(n); ours || !strings.HasPrefix(n, "user.") && n != accessList {
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

// equalXattrs reports whether two open files have the same attributes of those that someone can set. The
// access control list of the second is ignored where the first gets it.
func equalXattrs(a, b uintptr, inherits bool) (bool, error) {
	x, err := ownXattrs(a)
	if err != nil {
		return false, err
	}
	y, err := ownXattrs(b)
	if inherits && x[accessList] == "" {
		delete(y, accessList)
	}
	return maps.Equal(x, y), err
}
