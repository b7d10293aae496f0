package envs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"airlock/internal/clearing"
	"airlock/internal/units"
)

// layer is the result of installing one set of wheels into an empty environment: its document.
type layer struct {
	Python   string    `json:"python"`
	Packages []Package `json:"packages"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	// Missing are the shared libraries that extension modules need and nothing on the host has, as
	// "module needs library".
	Missing []string `json:"missing,omitempty"`
}

// Validate implements document.
func (l *layer) Validate() error { return validateAll(l.Packages) }

// layerDigest names the layer of a set for a kind of interpreter.
func layerDigest(kind string, packages []Package) string {
	return digestOf(struct {
		Python string
		Lock   []string
	}{kind, lockLines(packages)})
}

func (s *Store) layerRoot(digest string) string { return s.path("layers", digest, "root") }

func (s *Store) readLayer(digest string) (layer, error) {
	var l layer
	err := readDocument(s.path("layers", digest, "layer.json"), &l)
	if err == nil {
		now := time.Now()
		_ = os.Chtimes(s.path("layers", digest), now, now) // it is in use: no garbage for a while
	}
	return l, err
}

// makeLayer returns the layer of a set, and makes it if it is not there: fetches the wheels that are
// missing, looks at each, and installs them without a network if what they say of themselves fits.
func (c *Conversation) makeLayer(ctx context.Context, py *python, packages []Package, fits func([]Package) error, progress func(string)) (digest string, l layer, err error) {
	return c.layerOf(py, packages, func(w *work) (layer, error) {
		if err := py.withPip(); err != nil {
			return layer{}, err
		}
		if err := c.fetch(ctx, py, w, packages, progress); err != nil {
			return layer{}, err
		}
		inspected, err := c.inspect(py, packages)
		if err == nil {
			err = fits(inspected)
		}
		if err != nil {
			return layer{}, err
		}
		if progress != nil {
			progress("installing " + units.Counted(len(packages), "package"))
		}
		return c.install(ctx, py, w, inspected)
	})
}

// layerOf returns the layer of a set, and keeps what install makes of it, in the directory layer of w, if it is
// not there.
func (c *Conversation) layerOf(of runtime, packages []Package, install func(w *work) (layer, error)) (digest string, l layer, err error) {
	digest = layerDigest(of.kind(), packages)
	if l, err = c.store.readLayer(digest); !errors.Is(err, fs.ErrNotExist) {
		now := time.Now()
		_ = os.Chtimes(c.store.path("layers", digest), now, now) // until an environment names it
		return digest, l, err
	}
	w, err := c.store.newWork()
	if err != nil {
		return "", l, err
	}
	defer w.close()
	if l, err = install(w); err != nil {
		return "", l, err
	}
	return digest, l, c.store.commit(filepath.Join(w.dir, "layer"), filepath.Join("layers", digest))
}

// commit moves a finished directory to its place, from where it is used. Whoever was first wins: both are
// the same.
func (s *Store) commit(made, place string) error {
	if err := settle(made); err != nil {
		return err
	}
	err := os.Rename(made, s.path(place))
	if errors.Is(err, fs.ErrExist) || err != nil && exists(s.path(place)) {
		return clearing.Tree(made)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// wheelFile is where a wheel is kept.
func (s *Store) wheelFile(p Package) string { return s.path("wheels", p.SHA256, p.Wheel) }

// fetch gets the wheels that are not kept from earlier. Their hashes were fixed when the set was resolved;
// what pip says of them is checked once more.
func (c *Conversation) fetch(ctx context.Context, py *python, w *work, packages []Package, progress func(string)) error {
	var missing []Package
	for _, p := range packages {
		if now := time.Now(); os.Chtimes(c.store.path("wheels", p.SHA256), now, now) != nil || !exists(c.store.wheelFile(p)) {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	size := sizeOf(missing)
	if progress != nil {
		text := "fetching " + units.Counted(len(missing), "package")
		if size > 0 {
			text += " (" + units.Size(size).Rounded() + ")"
		}
		progress(text)
	}
	step, request := py.step("fetch"), driverRequest{Pip: py.Pip, Index: c.packages.Index}
	step.Network = true
	c.withCert(&step, &request)
	var answer struct {
		Status int `json:"status"`
	}
	told := tellOf(progress, func() string { return fetching(filepath.Join(w.dir, step.Name), size) })
	out, err := c.store.drivePython(ctx, c.installer, w, step, request, lockLines(missing), &answer)
	told()
	if err == nil && answer.Status != 0 {
		err = &StepError{Step: "fetch", Outcome: out}
	}
	if err != nil {
		return err
	}
	fetched, err := w.fetchedTo(step.Name)
	if err != nil {
		return err
	}
	for _, p := range missing {
		file := filepath.Join(fetched, p.Wheel)
		sum, _, err := hashFile(file)
		if err != nil {
			return fmt.Errorf("%s %s was not fetched: %w", p.Name, p.Version, err)
		}
		if sum != p.SHA256 {
			return fmt.Errorf("%s is not the file that was decided on: its sha256 is %s", p.Wheel, sum)
		}
		if err := c.store.keepWheel(file, p); err != nil {
			return err
		}
	}
	return nil
}

// sizeOf is what packages take to fetch, in bytes; 0 where the index does not say it of each.
func sizeOf(packages []Package) int64 {
	var size int64
	for _, p := range packages {
		if p.Size == 0 {
			return 0
		}
		size += p.Size
	}
	return size
}

// keepWheel moves a wheel to its place, whole or not at all. It may be there under another name, that of another index.
func (s *Store) keepWheel(file string, p Package) error {
	place := s.wheelFile(p)
	err := errors.Join(os.Chmod(file, 0o444), settle(filepath.Dir(file)), os.MkdirAll(filepath.Dir(place), 0o755))
	if err != nil {
		return err
	}
	return os.Rename(file, place)
}

// inspect looks at all wheels of a set, and refuses two that install the same file with different
// content. It returns the set with what the wheels' own metadata requires.
func (c *Conversation) inspect(py *python, packages []Package) ([]Package, error) {
	packages = slices.Clone(packages)
	owner, sums := map[string]int{}, map[string]uint32{}
	var shared []sharedFile
	for i, p := range packages {
		held, err := inspectWheel(c.store.wheelFile(p), p, py.site(), c.mostBytes)
		if err != nil {
			return nil, err
		}
		packages[i].Requires = held.Requires
		for name, sum := range held.Files {
			if other, ok := owner[name]; ok && sums[name] != sum {
				return nil, collisionOf(name, packages[other], p)
			} else if ok {
				shared = append(shared, sharedFile{name, other, i})
			}
			owner[name], sums[name] = i, sum
		}
	}
	return packages, c.firstCollision(py, packages, shared)
}

// install has pip install a set that was fetched, with no network, and makes a layer of the outcome.
func (c *Conversation) install(ctx context.Context, py *python, w *work, packages []Package) (layer, error) {
	staging, wheels, made := filepath.Join(w.dir, "env"), filepath.Join(w.dir, "wheels"), filepath.Join(w.dir, "layer")
	if err := errors.Join(os.Mkdir(staging, 0o755), os.Mkdir(wheels, 0o755), os.Mkdir(made, 0o755)); err != nil {
		return layer{}, err
	}
	for _, p := range packages {
		if err := linkOrCopy(c.store.wheelFile(p), filepath.Join(wheels, p.Wheel)); err != nil {
			return layer{}, err
		}
	}
	bones := py.skeleton()
	if err := bones.make(staging); err != nil {
		return layer{}, err
	}
	step := py.step("install")
	step.Binds = []Bind{{Source: staging, Target: mountPoint, Writable: true}, {Source: wheels, Target: "/wheels"}}
	request := driverRequest{Pip: py.Pip, Site: filepath.Join(mountPoint, py.site())}
	var answer struct {
		Status int `json:"status"`
	}
	out, err := c.store.drivePython(ctx, c.installer, w, step, request, lockLines(packages), &answer)
	if err == nil && answer.Status != 0 {
		err = &StepError{Step: "install", Outcome: out}
	}
	if err != nil {
		return layer{}, err
	}
	if err := bones.check(staging); err != nil {
		return layer{}, err
	}
	return finishLayer(staging, made, bones, py.Libraries, layer{Python: py.kind(), Packages: packages})
}

// finishLayer seals what was installed at staging and makes a layer of it in the directory made. libraries are
// where the interpreter has shared libraries beside the system's.
func finishLayer(staging, made string, bones skeleton, libraries []string, l layer) (layer, error) {
	if err := seal(staging, bones, &l); err != nil {
		return layer{}, err
	}
	l.Missing = missingLibraries(staging, libraries)
	if err := os.Rename(staging, filepath.Join(made, "root")); err != nil {
		return layer{}, err
	}
	return l, writeDocument(filepath.Join(made, "layer.json"), &l)
}

// seal takes the skeleton out of what was installed, refuses whatever is neither file nor directory, and
// makes the rest read-only. No process can change it any more.
func seal(dir string, bones skeleton, l *layer) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if bones.has(filepath.ToSlash(rel)) {
			return os.Remove(name)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o444)
		switch {
		case d.IsDir():
			dirs = append(dirs, name)
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("the installation left a %s, %q", kindOf(d.Type()), clip(rel, 200))
		case info.Mode()&0o111 != 0 || filepath.Dir(rel) == "bin":
			mode = 0o555 // archives made on Windows lack the bit for scripts, which installers are to add
		}
		l.Files++
		l.Bytes += info.Size()
		return os.Chmod(name, mode)
	})
	if err != nil {
		return err
	}
	// The top stays writable: a directory that is not can't be moved.
	for _, d := range slices.Backward(dirs[1:]) {
		if err := os.Chmod(d, 0o555); err != nil {
			return err
		}
	}
	return nil
}

// CollisionError says that two packages install the same file.
type CollisionError struct{ Path, One, Other string }

// Error implements error.
func (e *CollisionError) Error() string {
	return fmt.Sprintf("%s and %s both install %s, with different content; one would break the other", e.One, e.Other, strings.TrimPrefix(e.Path, "lib/"))
}
