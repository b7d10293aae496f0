package envs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"airlock/internal/filelock"
)

// Tree is what a run sees at /env: an ordinary virtual environment of hard links to the files of layers. A library
// of R packages is one, too. It is not removed before it is released.
type Tree struct {
	// Root is the directory to mount, read-only, at [Tree.MountPoint].
	Root string
	// Show are further paths of the host that runs must see for it: those of its interpreter.
	Show []string

	mount string
	lease *filelock.Lock
}

// Release gives the tree back.
func (t *Tree) Release() {
	if t != nil {
		t.lease.Unlock()
	}
}

// compose returns the tree of layers over a base, and makes it where it is missing. packages are all that
// the layers hold, deps site directories of the person's.
func (s *Store) compose(ctx context.Context, of runtime, layers []string, packages []Package, deps []string) (*Tree, error) {
	stamps, err := stampsOf(deps)
	if err != nil {
		return nil, err
	}
	to := of.shape()
	digest := digestOf(struct{ Identity, Lock, Deps []string }{to.identity, lockLines(packages), stamps})
	lease, err := filelock.Wait(ctx, s.path("trees", digest+".lease"), filelock.Shared)
	if err != nil {
		return nil, err
	}
	t := &Tree{Root: s.path("trees", digest, "root"), Show: to.show, mount: to.mount, lease: lease}
	if exists(t.Root) {
		now := time.Now()
		_ = os.Chtimes(s.path("trees", digest), now, now)
		return t, nil
	}
	if err := s.makeTree(to, digest, layers, packages, deps); err != nil {
		t.Release()
		return nil, err
	}
	return t, nil
}

func (s *Store) makeTree(to shape, digest string, layers []string, packages []Package, deps []string) error {
	w, err := s.newWork()
	if err != nil {
		return err
	}
	defer w.close()
	made := filepath.Join(w.dir, "tree")
	root := filepath.Join(made, "root")
	if err := errors.Join(os.Mkdir(made, 0o755), os.Mkdir(root, 0o755)); err != nil {
		return err
	}
	if err := to.bones.make(root); err != nil {
		return err
	}
	b := builder{root: root, from: map[string]string{}}
	for _, d := range to.bones.dirs {
		b.dirs = append(b.dirs, filepath.Join(root, d))
	}
	for _, l := range layers {
		if err := b.link(s.layerRoot(l), "."); err != nil {
			var e *collision
			if errors.As(err, &e) {
				source := sourceOf(e.path)
				return &CollisionError{Path: source, One: s.ownerOf(layers, source, to.site, b.from[e.path]), Other: s.ownerOf([]string{l}, source, to.site, "")}
			}
			return err
		}
	}
	for _, dir := range deps {
		if err := b.linkDeps(dir, to.site, packages); err != nil {
			return err
		}
	}
	slices.Sort(b.dirs)
	for _, d := range slices.Backward(b.dirs) {
		if err := os.Chmod(d, 0o555); err != nil {
			return err
		}
	}
	return s.commit(made, filepath.Join("trees", digest))
}

// builder links files into a tree.
type builder struct {
	root string
	from map[string]string // path to the directory that it was linked from
	dirs []string
}

// collision is a path that is there already, with another content.
type collision struct{ path string }

func (e *collision) Error() string { return e.path + " is there already" }

// link links everything below dir to the place of the tree. That a name exists is how a collision shows:
// files of the same content are none.
func (b *builder) link(dir, place string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.Join(place, rel)
		target := filepath.Join(b.root, rel)
		if d.IsDir() {
			err := os.Mkdir(target, 0o755)
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			if err == nil {
				b.dirs = append(b.dirs, target)
			}
			return nil
		}
		err = linkOrCopy(name, target)
		if errors.Is(err, fs.ErrExist) {
			if sameContent(name, target) {
				return nil
			}
			return &collision{filepath.ToSlash(rel)}
		}
		b.from[filepath.ToSlash(rel)] = dir
		return err
	})
}

// linkDeps joins a site directory of the person's. What is installed goes before it, file by file; the same
// package twice would be two versions in one.
func (b *builder) linkDeps(dir, site string, packages []Package) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("python.deps: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".dist-info")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, "-")
		if p, twice := find(packages, NormalizeName(name)); twice {
			return fmt.Errorf("python.deps: %s holds %s, which is installed as %s %s as well; take one of them away", dir, e.Name(), p.Name, p.Version)
		}
	}
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		target := filepath.Join(b.root, site, rel)
		switch {
		case d.IsDir():
			err = os.Mkdir(target, 0o755)
			if err == nil {
				b.dirs = append(b.dirs, target)
			}
		case d.Type()&fs.ModeSymlink != 0:
			var text string
			if text, err = os.Readlink(name); err == nil {
				err = os.Symlink(text, target)
			}
		case d.Type().IsRegular():
			// A copy: these files are the person's, and may be written in place.
			err = copyFile(name, target)
		}
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	})
}

// stampsOf tells one state of site directories from another.
func stampsOf(deps []string) ([]string, error) {
	var stamps []string
	for _, dir := range deps {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			stamps = append(stamps, fmt.Sprintf("%q %v %d %d", name, info.Mode(), info.Size(), info.ModTime().UnixNano()))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("python.deps: %w", err)
		}
	}
	return stamps, nil
}

// linkOrCopy gives a file a second name; where the filesystem can't, it copies.
func linkOrCopy(from, to string) error {
	err := os.Link(from, to)
	if errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EMLINK) || errors.Is(err, syscall.EPERM) {
		return copyFile(from, to)
	}
	return err
}

func copyFile(from, to string) (err error) {
	in, err := openRegular(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o444)
	if info.Mode()&0o111 != 0 {
		mode = 0o555
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func sameContent(a, b string) bool {
	x, errX := openRegular(a)
	if errX != nil {
		return false
	}
	defer x.Close()
	y, errY := openRegular(b)
	if errY != nil {
		return false
	}
	defer y.Close()
	bufX, bufY := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errX := io.ReadFull(x, bufX)
		m, errY := io.ReadFull(y, bufY)
		if n != m || !bytes.Equal(bufX[:n], bufY[:m]) {
			return false
		}
		if errX != nil || errY != nil {
			return errX == errY
		}
	}
}

// sourceOf gives, of a module's bytecode, the file that it was compiled from: no record names the other.
func sourceOf(name string) string {
	dir, file := path.Split(name)
	module, _, ok := strings.Cut(file, ".cpython-")
	if !ok || path.Base(dir) != "__pycache__" {
		return name
	}
	return path.Join(path.Dir(path.Clean(dir)), module+".py")
}

// ownerOf finds by their records which package of some layers installed a path; only a layer whose root is
// from is looked at, if that is given.
func (s *Store) ownerOf(layers []string, name, site, from string) string {
	for _, l := range layers {
		root := s.layerRoot(l)
		if from != "" && root != from {
			continue
		}
		records, _ := filepath.Glob(filepath.Join(root, site, "*.dist-info", "RECORD"))
		for _, record := range records {
			if recorded(record, func(file string) bool { return filepath.ToSlash(filepath.Join(site, file)) == name }) {
				return strings.Replace(strings.TrimSuffix(filepath.Base(filepath.Dir(record)), ".dist-info"), "-", " ", 1)
			}
		}
	}
	return "a package that is installed"
}

// maxRecord bounds what is read of a package's record of its files.
const maxRecord = 32 << 20

// recorded reports whether a record names a file.
func recorded(record string, is func(file string) bool) bool {
	f, err := openRegular(record)
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(io.LimitReader(f, maxRecord)); lines.Scan(); {
		file, _, _ := strings.Cut(lines.Text(), ",")
		if is(strings.Trim(file, `"`)) {
			return true
		}
	}
	return false
}
