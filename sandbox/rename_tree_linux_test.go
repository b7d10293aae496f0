package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What the cases of renames begin with, and how what came of them is told.

// longAgo is the time of everything that was there before: a later one was set by what a case did.
var longAgo = time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)

// accessList is a POSIX access list as an extended attribute holds it: user rwx, group r-x, the user uid
// r-x, mask r-x, others none.
func accessList(uid int) []byte {
	const none = 0xffffffff
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range [][3]uint32{{1, 7, none}, {2, 5, uint32(uid)}, {4, 5, none}, {16, 5, none}, {32, 0, none}} {
		b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
		b = binary.LittleEndian.AppendUint16(b, uint16(e[1]))
		b = binary.LittleEndian.AppendUint32(b, e[2])
	}
	return b
}

// growTree makes what each case begins with. On an overlay all of it lies in the lower layer.
func growTree(t *testing.T, dir string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{
		"d/sub/deep", "e", "empty", "ro/inner", "p/ro/deep", "p/none/deep", "p/ro/none", "locked", "sticky/d",
		"setgid/d", "shut/d", "listed/d", "default/d", "x/d",
	} {
		must(os.MkdirAll(at(d), 0o755))
	}
	for f, mode := range map[string]fs.FileMode{
		"d/a": 0o755, "d/sub/b": 0o640, "d/sub/deep/c": 0o644, "e/x": 0o644, "f": 0o644, "ro/f": 0o444, "ro/inner/f": 0o644,
		"p/ro/f": 0o644, "p/ro/none/f": 0o644, "p/none/f": 0o644, "p/none/deep/f": 0, "locked/f": 0o600, "sticky/d/f": 0o644,
		"setgid/d/f": 0o644, "shut/d/f": 0o644, "listed/d/f": 0o644, "default/d/f": 0o644, "x/d/\xff\n": 0o644,
	} {
		must(os.WriteFile(at(f), []byte(f), mode))
		must(os.Chmod(at(f), mode))
	}
	must(unix.Mkfifo(at("d/fifo"), 0o622))
	for link, text := range map[string]string{"d/link": "a", "to-d": "d", "dangling": "nowhere", "d/loop": "loop"} {
		must(os.Symlink(text, at(link)))
	}
	for _, x := range []string{"d", "d/a", "d/sub"} {
		must(unix.Setxattr(at(x), "user.test", []byte(x), 0))
	}
	for _, d := range []string{"listed", "listed/d"} {
		must(unix.Setxattr(at(d), "system.posix_acl_access", accessList(os.Geteuid()), 0))
	}
	must(unix.Setxattr(at("default"), "system.posix_acl_default", accessList(os.Geteuid()), 0))
	must(unix.Setxattr(at("listed/d"), "system.posix_acl_default", accessList(os.Geteuid()), 0))
	must(filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		ts, _ := unix.TimeToTimespec(longAgo)
		return errors.Join(err, unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW))
	}))
	for d, mode := range map[string]uint32{
		"d": 0o750, "p/ro/none": 0, "p/ro": 0o555, "p/none": 0, "ro": 0o555, "locked": 0, "sticky": 0o1777,
		"sticky/d": 0o1770, "setgid": 0o2755, "shut": 0o555,
	} {
		must(unix.Chmod(at(d), mode))
	}
}

// openUp makes a tree removable.
func openUp(dir string) {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
}

// describeTree lists a tree, with all of it that a rename has to keep. It opens what is closed.
func describeTree(dir string) []string {
	var lines []string
	var list func(p, rel string)
	list = func(p, rel string) {
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			lines = append(lines, fmt.Sprintf("%q: %v", rel, err))
			return
		}
		when := "new"
		if time.Unix(st.Mtim.Unix()).Equal(longAgo) {
			when = "old"
		}
		line := fmt.Sprintf("%q %06o %s", rel, st.Mode, when)
		names := make([]byte, 1024)
		if n, err := unix.Llistxattr(p, names); err == nil {
			for name := range strings.SplitSeq(string(names[:n]), "\x00") {
				if strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl") {
					value := make([]byte, 1024)
					n, err := unix.Lgetxattr(p, name, value)
					line += fmt.Sprintf(" %s=%x,%v", name, value[:max(n, 0)], err)
				}
			}
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			if st.Mode&0o400 == 0 {
				_ = os.Chmod(p, 0o400)
			}
			b, err := os.ReadFile(p)
			line += fmt.Sprintf(" %q %v", b, err)
		case unix.S_IFLNK:
			text, err := os.Readlink(p)
			line += fmt.Sprintf(" -> %q %v", text, err)
		}
		lines = append(lines, line)
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			if st.Mode&0o500 != 0o500 {
				_ = os.Chmod(p, 0o700)
			}
			entries, err := os.ReadDir(p)
			if err != nil {
				lines = append(lines, fmt.Sprintf("%q: %v", rel, err))
			}
			for _, e := range entries {
				list(filepath.Join(p, e.Name()), rel+"/"+e.Name())
			}
		}
	}
	list(dir, "")
	return lines
}
