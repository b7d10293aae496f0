package sandbox

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path"
	"strconv"
	"strings"
)

// Account is who a run is, as its own passwd(5) says it.
type Account struct {
	Name, Group string
	UID, GID    int
	// Home is the home directory, at its real path. The run gets an empty one there.
	Home  string
	Shell string
}

const nobody = 65534 // what the kernel shows for every id that is not mapped

// lookupAccount asks the host's user database, and HOME where the run is the server's own user.
func lookupAccount(env []string, uid, gid int) Account {
	a := Account{UID: uid, GID: gid, Shell: "/bin/sh"}
	var home string
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		a.Name, home = u.Username, u.HomeDir
	}
	if g, err := user.LookupGroupId(strconv.Itoa(gid)); err == nil {
		a.Group = g.Name
	}
	if uid == os.Geteuid() {
		home = cmp.Or(getenv(env, "HOME"), home)
	}
	a.Name = field(a.Name, "user")
	a.Group = field(a.Group, "group")
	a.Home = field(home, "/home/"+a.Name)
	if !path.IsAbs(a.Home) || path.Clean(a.Home) == "/" {
		a.Home = "/home/" + a.Name
	}
	a.Home = path.Clean(a.Home)
	if real, _, err := FollowLinks(a.Home); err == nil {
		a.Home = real
	}
	if _, err := os.Stat("/bin/bash"); err == nil {
		a.Shell = "/bin/bash"
	}
	return a
}

// passwdHome is the home directory that the host's user database gives; "" if it gives none.
func passwdHome(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return ""
	}
	return u.HomeDir
}

// field returns value if it can stand in a line of passwd(5), and instead otherwise.
func field(value, instead string) string {
	if value == "" || strings.ContainsAny(value, ":\n\x00") {
		return instead
	}
	return value
}

// files are those of /etc that name users and hosts: the run's own, not the host's.
func (a Account) files() []Mount {
	var passwd, group strings.Builder
	if a.UID != 0 {
		passwd.WriteString("root:x:0:0:root:/root:/usr/sbin/nologin\n")
	}
	fmt.Fprintf(&passwd, "%s:x:%d:%d::%s:%s\n", a.Name, a.UID, a.GID, a.Home, a.Shell)
	if a.UID != nobody {
		fmt.Fprintf(&passwd, "nobody:x:%d:%d:nobody:/nonexistent:/usr/sbin/nologin\n", nobody, nobody)
	}
	if a.GID != 0 {
		group.WriteString("root:x:0:\n")
	}
	fmt.Fprintf(&group, "%s:x:%d:\n", a.Group, a.GID)
	if a.GID != nobody {
		fmt.Fprintf(&group, "nogroup:x:%d:\n", nobody)
	}
	files := []struct{ name, content string }{
		{"passwd", passwd.String()},
		{"group", group.String()},
		{"hostname", "airlock\n"},
		{"hosts", "127.0.0.1 localhost airlock\n::1 localhost ip6-localhost ip6-loopback airlock\n"},
		// Without a line for it, a server at the run's loopback would be asked, which no counter tells of: see Exit.Unrouted.
		{"resolv.conf", "# The network of this run is closed: no route leads to its name server.\n" +
			"nameserver " + ResolverAddress + "\noptions timeout:1 attempts:1\n"},
		{"nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nservices: files\nprotocols: files\nrpc: files\nethers: files\n"},
	}
	mounts := make([]Mount, 0, len(files))
	for _, f := range files {
		mounts = append(mounts, Mount{Kind: MountFile, Target: "/etc/" + f.name, Content: []byte(f.content)})
	}
	return mounts
}

// reaches reports whether the account may enter every directory above a real path of the host. The
// server's own user finds that out by trying; for another one the permission bits are looked at, so
// that root does not show a user what lies in root's own home.
func (a Account) reaches(real string) bool {
	if a.UID == os.Geteuid() {
		return true
	}
	for dir := path.Dir(real); ; dir = path.Dir(dir) {
		fi, err := os.Lstat(dir)
		if err != nil || !a.may(fi, 0o1) {
			return false
		}
		if dir == "/" {
			return true
		}
	}
}

// may reports whether the permission bits of a file give the account all of want (4 read, 2 write, 1
// execute or search).
func (a Account) may(fi fs.FileInfo, want fs.FileMode) bool {
	uid, gid := ownerOf(fi)
	mode := fi.Mode().Perm()
	switch {
	case uid == a.UID:
		mode >>= 6
	case gid == a.GID:
		mode >>= 3
	}
	return mode&want == want
}
