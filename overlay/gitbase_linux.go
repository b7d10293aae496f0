package overlay

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// gitBase is what a transaction remembers of the repository at the root of the workspace, so that a landing
// can tell an index that was only refreshed from one that was changed, and a git directory that was worked in
// from another one in its place.
//
// The index is read only then: git replaces it and never writes to it, so that the one from the beginning is
// still there for who holds it open.
type gitBase struct {
	path  string // of the git directory
	dir   inode
	index *os.File // nil if there was none
	was   inode    // the index
}

// openGitBase looks at the repository at the root of a workspace. One that can't be read is none. Of a shared one
// the index is that of the run's working tree.
func openGitBase(root *tree, shared *sharedGit) gitBase {
	b := gitBase{path: ".git"}
	if head, err := root.stat("HEAD"); err == nil && head.kind == regular {
		b.path = "" // the workspace is a git directory itself
	}
	var err error
	if b.dir, err = root.stat(b.path); err != nil || b.dir.kind != directory {
		b.dir = inode{}
		return b
	}
	index := joinPath(b.path, "index")
	if shared != nil {
		index = shared.dir() + "/index"
	}
	f, err := root.file(index)
	if err != nil {
		return b
	}
	if b.was, err = statAt(int(f.Fd()), ""); err != nil || b.was.kind != regular {
		f.Close()
		return b
	}
	b.index = f
	return b
}

func (b gitBase) close() {
	if b.index != nil {
		b.index.Close()
	}
}

// is reports whether a directory of the workspace is the git directory that was there at the beginning.
func (b gitBase) is(path string, dir inode) bool {
	return b.dir.kind == directory && path == b.path && dir.ino == b.dir.ino && dir.dev == b.dir.dev
}

// digest reads the index that was there at the beginning.
func (b gitBase) digest() (indexDigest, error) {
	i, err := statAt(int(b.index.Fd()), "")
	if err != nil {
		return indexDigest{}, err
	}
	if !i.same(b.was) { // but for what the loss of its name moved
		return indexDigest{}, errors.New("the index was written in place")
	}
	return readIndex(io.NewSectionReader(b.index, 0, int64(i.size)))
}

// create makes a file in a directory that is ours alone.
func (t *tree) create(name string) (*os.File, error) {
	fd, err := unix.Openat(t.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, t.fail("create", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
