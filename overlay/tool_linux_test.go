package overlay

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Scripts of tests, of the run and of the host, can call "tool" for what not every host has a program for:
// the test binary starts itself again.

const (
	asTool       = "AIRLOCK_OVERLAY_TEST_TOOL"
	toolFunction = "tool() { " + asTool + `=1 "$TOOL" "$@"; }; `
)

func self() string {
	path, err := os.Executable()
	must(err)
	return path
}

// tools does one thing after the other, with a "," between them: to start a process for each takes long.
func tools(args []string) {
	for len(args) > 0 {
		end := slices.Index(args, ",")
		if end < 0 {
			end = len(args)
		}
		tool(args[:end])
		args = args[min(end+1, len(args)):]
	}
}

// tool does what the first argument says.
func tool(args []string) {
	path := args[1]
	value := func() []byte {
		if n, ok := strings.CutPrefix(args[3], "@"); ok { // so many bytes
			count, err := strconv.Atoi(n)
			must(err)
			return []byte(strings.Repeat("x", count))
		}
		return []byte(args[3])
	}
	switch args[0] {
	case "set":
		must(unix.Lsetxattr(path, args[2], value(), 0))
	case "deeds":
		doDeeds(path)
	case "setmany": // PATH PREFIX COUNT: attributes PREFIX1 and so forth, each with its number
		count, err := strconv.Atoi(args[3])
		must(err)
		for n := 1; n <= count; n++ {
			must(unix.Lsetxattr(path, args[2]+strconv.Itoa(n), []byte(strconv.Itoa(n)), 0))
		}
	case "unset":
		must(unix.Lremovexattr(path, args[2]))
	case "has": // the value, or no such attribute
		got, err := xattrValue(path, args[2], unix.Lgetxattr)
		must(err)
		if len(args) < 4 && got != nil || len(args) == 4 && string(got) != string(value()) {
			must(fmt.Errorf("%s of %s is %.100q", args[2], path, got))
		}
	case "acl": // PATH access|default UID PERMISSIONS: a list that names one more user
		must(unix.Lsetxattr(path, "system.posix_acl_"+args[2], accessListOf(args[3], args[4]), 0))
	case "hasacl":
		got, err := xattrValue(path, "system.posix_acl_"+args[2], unix.Lgetxattr)
		must(err)
		if want := accessListOf(args[3], args[4]); string(got) != string(want) {
			must(fmt.Errorf("the %s list of %s is %x, want %x", args[2], path, got, want))
		}
	case "socket":
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		must(err)
		must(unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	case "deep": // PATH COUNT NAME: directories in one another, deeper than a path can name
		fd, err := unix.Open(path, unix.O_PATH, 0)
		must(err)
		count, err := strconv.Atoi(args[2])
		must(err)
		for range count {
			must(unix.Mkdirat(fd, args[3], 0o755))
			next, err := unix.Openat(fd, args[3], unix.O_PATH, 0)
			must(err)
			must(unix.Close(fd))
			fd = next
		}
		file, err := unix.Openat(fd, "bottom", unix.O_CREAT|unix.O_WRONLY, 0o644)
		must(err)
		must(unix.Close(file))
	default:
		must(fmt.Errorf("no such tool: %q", args))
	}
}

// accessListOf is a list for the owner rw-, one user, the group r--, the mask rw-, and nobody else.
func accessListOf(uid, permissions string) []byte {
	id, err := strconv.Atoi(uid)
	must(err)
	perm, err := strconv.Atoi(permissions)
	must(err)
	const undefined = 0xffffffff
	list := binary.LittleEndian.AppendUint32(nil, 2) // version
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 6, undefined}, {2, uint16(perm), uint32(id)}, {4, 4, undefined}, {0x10, 6, undefined}, {0x20, 0, undefined}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.perm)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	return list
}
