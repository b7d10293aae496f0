package envs

import (
	"archive/zip"
	"crypto/sha256"
	"io"
	"maps"
	"slices"
	"strings"
)

// sharedFile is a path in the environment that two wheels of a set install, with the same checksum. Whoever makes an
// archive can give it the checksums that he wants, so that this says nothing: the content is compared.
type sharedFile struct {
	path       string
	one, other int // in the set
}

// firstCollision finds the first shared file whose content is not the same in both wheels. Each wheel is read once.
func (c *Conversation) firstCollision(py *python, packages []Package, shared []sharedFile) error {
	wanted := map[int]map[string]bool{}
	for _, s := range shared {
		for _, i := range []int{s.one, s.other} {
			if wanted[i] == nil {
				wanted[i] = map[string]bool{}
			}
			wanted[i][s.path] = true
		}
	}
	sums := map[int]map[string][sha256.Size]byte{}
	for _, i := range slices.Sorted(maps.Keys(wanted)) {
		var err error
		if sums[i], err = memberSums(c.store.wheelFile(packages[i]), py.site(), wanted[i]); err != nil {
			return &WheelError{Wheel: packages[i].Wheel, Why: err.Error()}
		}
	}
	for _, s := range shared {
		if sums[s.one][s.path] != sums[s.other][s.path] {
			return collisionOf(s.path, packages[s.one], packages[s.other])
		}
	}
	return nil
}

func collisionOf(path string, one, other Package) error {
	return &CollisionError{Path: path, One: one.Name + " " + one.Version, Other: other.Name + " " + other.Version}
}

// memberSums hashes what a wheel, which was inspected, installs at some paths in the environment. A path that no member
// has is that of a command, and stands for the file that names it.
func memberSums(file, site string, paths map[string]bool) (map[string][sha256.Size]byte, error) {
	archive, size, err := openWheel(file)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	z, err := zip.NewReader(archive, size)
	if err != nil {
		return nil, err
	}
	sums := map[string][sha256.Size]byte{}
	var commands [sha256.Size]byte
	for _, f := range z.File {
		at, err := installed(f.Name, site)
		isCommands := strings.HasSuffix(f.Name, ".dist-info/entry_points.txt") && strings.Count(f.Name, "/") == 1
		if err != nil || strings.HasSuffix(f.Name, "/") || !paths[at] && !isCommands {
			continue
		}
		sum, err := memberSum(f)
		if err != nil {
			return nil, err
		}
		sums[at] = sum
		if isCommands {
			commands = sum
		}
	}
	for path := range paths {
		if _, ok := sums[path]; !ok {
			sums[path] = commands
		}
	}
	return sums, nil
}

// memberSum reads no more of a member than what it says it holds, which was bounded.
func memberSum(f *zip.File) (sum [sha256.Size]byte, err error) {
	r, err := f.Open()
	if err != nil {
		return sum, err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(r, int64(f.UncompressedSize64)+1)); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}
