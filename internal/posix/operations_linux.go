package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// operation is one call on a small tree, with paths below the working directory.
type operation struct {
	call string
	a, b string
	n    uint
}

func (o operation) String() string {
	return fmt.Sprintf("%s %q %q %#o", o.call, o.a, o.b, o.n)
}

// longAgo is a time that nothing has by itself.
var longAgo = unix.Timespec{Sec: 981_173_106, Nsec: 789}

// calls are what a sequence is drawn from; a name that stands there several times comes more often.
var calls = []string{
	"rename", "rename", "rename", "rename", "rename", "rename", "noreplace", "exchange", "exchange", "renameat",
	"mkdir", "mkdir", "rmdir", "rmdir", "unlink", "unlink", "create", "create", "append", "append", "truncate",
	"symlink", "link", "link", "chmod", "utimes", "xattr", "stat", "list", "read", "replace", "removeall", "fifo",
}

// randomPath draws a path of a small namespace, so that operations meet.
func randomPath(r *rand.Rand) string {
	depth := 1 + r.IntN(3)
	if r.IntN(12) == 0 {
		depth = 4
	}
	parts := make([]string, depth)
	for i := range parts {
		parts[i] = string("abcd"[r.IntN(4)])
		switch r.IntN(60) {
		case 0:
			// Never out of the tree, wherever the path begins.
			if parts[i] = "."; i > 0 && parts[i-1] != "." && parts[i-1] != ".." {
				parts[i] = ".."
			}
		case 1:
			parts[i] = "\xff\n" + parts[i]
		}
	}
	path := strings.Join(parts, "/")
	if r.IntN(20) == 0 {
		path += "/"
	}
	return path
}

// randomOperation draws an operation. What it is depends on r alone, not on what came before.
func randomOperation(r *rand.Rand) operation {
	o := operation{call: calls[r.IntN(len(calls))], a: randomPath(r), b: randomPath(r)}
	modes := []uint{0o755, 0o755, 0o755, 0o700, 0o750, 0o555, 0o500, 0o311, 0, 0o1777}
	o.n = modes[r.IntN(len(modes))]
	return o
}

// do carries the operation out and says what came of it: an errno's name, or what was read.
func (o operation) do() string {
	return resultText(o.try())
}

func resultText(said string, err error) string {
	var errno unix.Errno
	switch {
	case err == nil:
		return "ok " + said
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

func (o operation) try() (string, error) {
	const here = unix.AT_FDCWD
	switch o.call {
	case "rename":
		return "", unix.Rename(o.a, o.b)
	case "noreplace":
		return "", unix.Renameat2(here, o.a, here, o.b, unix.RENAME_NOREPLACE)
	case "exchange":
		return "", unix.Renameat2(here, o.a, here, o.b, unix.RENAME_EXCHANGE)
	case "renameat":
		dir, err := unix.Open(filepath.Dir(o.a), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		defer unix.Close(dir)
		return "", unix.Renameat(dir, filepath.Base(o.a), here, o.b)
	case "mkdir":
		return "", unix.Mkdir(o.a, uint32(o.n))
	case "rmdir":
		return "", unix.Rmdir(o.a)
	case "unlink":
		return "", unix.Unlink(o.a)
	case "create":
		return "", o.write(unix.O_CREAT|unix.O_EXCL, "made\n")
	case "append":
		return "", o.write(unix.O_CREAT|unix.O_APPEND, "more\n")
	case "truncate":
		return "", unix.Truncate(o.a, int64(o.n%5))
	case "replace": // as editors save
		temporary := operation{a: filepath.Dir(o.a) + "/tmp", n: o.n}
		if err := temporary.write(unix.O_CREAT|unix.O_TRUNC, "saved\n"); err != nil {
			return "", err
		}
		err := unix.Rename(temporary.a, o.a)
		if err != nil {
			_ = unix.Unlink(temporary.a)
		}
		return "", err
	case "symlink":
		if strings.Contains(o.b, ".") { // a link to the top, and ".." behind it, would lead out
			return "", nil
		}
		return "", unix.Symlink(o.b, o.a)
	case "link": // of a new file: one of the lower layer has another inode number by its new name
		if err := o.write(unix.O_CREAT|unix.O_EXCL, "linked\n"); err != nil {
			return "", err
		}
		return "", unix.Link(o.a, o.b)
	case "fifo":
		if o.n != 0 { // seldom, as a FIFO doesn't land and ends the comparison of its tree
			return "", nil
		}
		return "", unix.Mkfifo(o.a, 0o600)
	case "chmod":
		return "", unix.Chmod(o.a, uint32(o.n))
	case "utimes": // of a link it does not land
		var st unix.Stat_t
		if unix.Lstat(o.a, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return "", nil
		}
		return "", unix.UtimesNanoAt(here, o.a, []unix.Timespec{longAgo, longAgo}, unix.AT_SYMLINK_NOFOLLOW)
	case "xattr": // of a directory they land only if it is new
		var st unix.Stat_t
		if unix.Lstat(o.a, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return "", nil
		}
		return "", unix.Lsetxattr(o.a, "user.test", []byte(strconv.Itoa(int(o.n))), 0)
	case "stat":
		return describe(o.a)
	case "list":
		names, err := listDirectory(o.a)
		return fmt.Sprintf("%q", names), err
	case "read":
		return o.read()
	case "removeall":
		if o.n&0o1000 == 0 { // seldom, or nothing would grow
			return "", nil
		}
		return "", os.RemoveAll(strings.TrimSuffix(o.a, "/"))
	}
	panic("no such call: " + o.call)
}

func (o operation) write(flags int, text string) error {
	fd, err := unix.Open(o.a, flags|unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, uint32(o.n))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err
}

func (o operation) read() (string, error) {
	fd, err := unix.Open(o.a, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	text := make([]byte, 4096)
	n, err := unix.Read(fd, text)
	return strconv.Quote(string(text[:max(n, 0)])), err
}

// sequence is a number of operations on one tree, drawn from a seed.
type sequence struct{ seed, length int }

func (s sequence) operations(stream uint64) []operation {
	r := rand.New(rand.NewPCG(uint64(s.seed), stream))
	list := make([]operation, s.length)
	for i := range list {
		list[i] = randomOperation(r)
	}
	return list
}

// treeResult is what became of a sequence: a line for each operation, and the tree afterwards.
type treeResult struct {
	Operations []string
	Tree       []string
}

// playTree is the payload: it plays sequences in the sub-directories of the working directory that have their
// seeds' names, and writes what became of them. Bare and in a run it has the same rights: none but its user's.
func playTree(out io.Writer, round uint64, length int) error {
	runtime.LockOSThread() // capabilities are a thread's
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return err
	}
	unix.Umask(0o022)
	top, err := os.Getwd()
	if err != nil {
		return err
	}
	names, err := listDirectory(".")
	if err != nil {
		return err
	}
	results := make(map[string]treeResult)
	for _, name := range names {
		seed, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		dir := filepath.Join(top, name)
		if err := errors.Join(unix.Chmod(dir, 0o755), os.Chdir(dir)); err != nil {
			return fmt.Errorf("go to %s: %w", dir, err)
		}
		var r treeResult
		for _, o := range (sequence{seed, length}).operations(round) {
			r.Operations = append(r.Operations, o.String()+": "+o.do())
		}
		// A landing needs to look into what the run changed.
		if err := openDirectories(dir); err != nil {
			return fmt.Errorf("open up %s: %w", dir, err)
		}
		r.Tree = describeTree(".", false)
		results[name] = r
	}
	return json.NewEncoder(out).Encode(results)
}

// growTree fills a directory by a sequence of its own, in which most things come to be.
func growTree(dir string, seed int) error {
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	for range 40 {
		// On both sides the same, so that it needs no look at what is there.
		o := operation{a: filepath.Join(dir, filepath.Clean("/"+randomPath(r))), n: 0o755}
		switch kind := r.IntN(10); {
		case kind < 5:
			if err := os.MkdirAll(o.a, 0o755); err != nil && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.EEXIST) {
				return err
			}
			continue
		case kind < 9:
			_ = o.write(unix.O_CREAT, "grown "+strconv.Itoa(r.IntN(100))+"\n")
		default:
			_ = operation{call: "symlink", a: o.a, b: randomPath(r)}.do()
		}
	}
	return spoil(dir, r)
}

// spoil gives some files attributes, and some of what lies deepest modes that forbid much.
func spoil(dir string, r *rand.Rand) error {
	var all []string
	err := filepath.WalkDir(dir, func(p string, entry os.DirEntry, err error) error {
		if err != nil || p == dir || entry.Type()&os.ModeSymlink != 0 {
			return err
		}
		all = append(all, p)
		if entry.Type().IsRegular() && r.IntN(4) == 0 {
			return unix.Setxattr(p, "user.test", []byte("grown"), 0)
		}
		return nil
	})
	// Backwards: what lies in a directory comes before it.
	for _, p := range slices.Backward(all[len(all)-len(all)/6:]) {
		err = errors.Join(err, unix.Chmod(p, []uint32{0o555, 0o700, 0, 0o1777}[r.IntN(4)]))
	}
	return errors.Join(err, openDirectories(dir))
}

// openDirectories lets the owner look into every directory.
func openDirectories(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return fmt.Errorf("look at %q: %w", dir, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	if mode := st.Mode & 0o7777; mode&0o500 != 0o500 {
		if err := unix.Chmod(dir, mode|0o500); err != nil {
			return fmt.Errorf("chmod %q: %w", dir, err)
		}
	}
	names, err := listDirectory(dir)
	for _, name := range names {
		err = errors.Join(err, openDirectories(filepath.Join(dir, name)))
	}
	return err
}
