package overlay

import (
	"bufio"
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"airlock/internal/mountinfo"
	"airlock/internal/procfile"
)

// mount is something that is mounted in a workspace. An overlay's lower layer does not show it: it has to
// be mounted in the run again.
type mount struct {
	id     uint64 // the kernel's
	path   string // in the workspace
	fstype string
}

// mountTable is what the kernel's list of mounts (proc_pid_mountinfo(5)) says of places in a directory. The list is read each time:
// poll(2) tells of mounts that come and go, but not of a rename of what they lie in, which changes their paths. It is parsed when
// it is another one.
type mountTable struct {
	mu     sync.Mutex
	text   []byte
	places []mount // of text
}

// in gives the mounts in dir, which is always the same, as the list is now: also those that another one covers.
func (t *mountTable) in(dir string) ([]mount, error) {
	text, err := procfile.Read("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text == nil || !bytes.Equal(text, t.text) {
		t.text, t.places = text, parseMounts(text, dir)
	}
	return t.places, nil
}

// visibleMounts lists what is mounted in the workspace and can be seen there: what lies under another mount is
// left out, as it is for everyone else. Outer ones come first.
func (w *Workspace) visibleMounts() ([]mount, error) {
	root := w.root
	places, err := w.mounts.in(root.path)
	if err != nil {
		return nil, err
	}
	var seen []mount
	for _, m := range places {
		fd, err := root.beneath(m.path)
		if err != nil {
			continue // it went meanwhile, or something covers the way to it
		}
		var st unix.Statx_t
		err = unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st)
		unix.Close(fd)
		if err == nil && st.Mnt_id == m.id {
			seen = append(seen, m)
		}
	}
	slices.SortStableFunc(seen, func(a, b mount) int { return strings.Count(a.path, "/") - strings.Count(b.path, "/") })
	return seen, nil
}

// beneath opens a path beneath the tree only to look at it, through whatever is mounted on the way.
func (t *tree) beneath(path string) (int, error) {
	return retry(func() (int, error) {
		return unix.Openat2(t.fd, path, &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
	})
}

// parseMounts reads the lines of a mountinfo that are about places in dir; see proc_pid_mountinfo(5):
//
//	36 35 98:0 /sub /mnt/a\040b rw,noatime master:1 - ext4 /dev/root rw
func parseMounts(text []byte, dir string) []mount {
	var mounts []mount
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		dash := slices.Index(f, "-")
		if len(f) < 5 || dash < 0 || dash+1 >= len(f) {
			continue
		}
		path, in := strings.CutPrefix(mountinfo.Unescape(f[4]), strings.TrimSuffix(dir, "/")+"/")
		id, err := strconv.ParseUint(f[0], 10, 64)
		if !in || path == "" || err != nil {
			continue
		}
		mounts = append(mounts, mount{id: id, path: path, fstype: f[dash+1]})
	}
	return mounts
}

// kernelFilesystems hold no content of anyone's: what is in them is the host's kernel, and its processes.
// A chroot in a workspace has some of them. A run never sees them.
var kernelFilesystems = []string{
	"proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "securityfs", "debugfs", "tracefs", "configfs",
	"bpf", "mqueue", "pstore", "efivarfs", "fusectl", "binfmt_misc", "autofs", "nsfs", "rpc_pipefs", "nfsd",
	"selinuxfs", "smackfs", "binder", "resctrl", "functionfs", "xenfs",
}
