package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// doDeeds does what is written in a file. It is what tool does for the matrix.
func doDeeds(path string) {
	text, err := os.ReadFile(path)
	must(err)
	var deeds []deed
	must(json.Unmarshal(text, &deeds))
	for _, d := range deeds {
		d.do()
	}
}

func makeKind(kind, path, who string) {
	switch kind {
	case "file":
		fileBy(path, who)
	case "link":
		must(os.Symlink(by[who].text, path))
	case "dir":
		must(os.MkdirAll(path+"/sub", 0o755))
		fileBy(path+"/f", who)
		fileBy(path+"/sub/g", who)
	case "opaque":
		must(os.Mkdir(path, 0o755))
		fileBy(path+"/f", who)
	case "other":
		must(os.Mkdir(path, 0o755))
		fileBy(path+"/f", who)
		fileBy(path+"/h", who)
	case "FIFO":
		must(unix.Mkfifo(path, 0o644))
	case "socket":
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		must(err)
		must(unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
		must(unix.Close(fd))
	}
}

// fileBy writes a file, in place if there is one, with the marks of who did.
func fileBy(path, who string) {
	b := by[who]
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	must(err)
	_, err = f.WriteString(b.text)
	must(err)
	must(f.Close())
	must(unix.Setxattr(path, "user.by", []byte(b.attr), 0))
	must(os.Chmod(path, b.mode))
	must(unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Sec: b.mtime.sec, Nsec: int64(b.mtime.nsec)}, {Sec: b.mtime.sec, Nsec: int64(b.mtime.nsec)}}, 0))
}

// whoMade says whose marks a file has, or else what it has.
func whoMade(t *testing.T, path string, i os.FileInfo) (who, other string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	attr, err := xattrValue(path, "user.by", unix.Lgetxattr)
	if err != nil {
		t.Fatal(err)
	}
	mtime := stamp{i.ModTime().Unix(), uint32(i.ModTime().Nanosecond())}
	for who, b := range by {
		if string(text) == b.text && string(attr) == b.attr && i.Mode() == b.mode && mtime == b.mtime {
			return who, ""
		}
	}
	return "", fmt.Sprintf("%q, user.by %q, mode %v, mtime %v", text, attr, i.Mode(), mtime)
}
