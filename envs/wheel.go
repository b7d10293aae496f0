package envs

import (
	"archive/zip"
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"airlock/internal/pattern"
	"airlock/internal/units"
)

// A wheel is looked at before anything unpacks it: what it would put where, whether it is the package that
// it was taken for, and whether its member names and modes are such as an honest wheel has. Nothing of it
// is executed for that, and no more of it is unpacked than its metadata.

const (
	// maxMembers bounds the files of a wheel, maxMetadata the size of each of its metadata files.
	maxMembers  = 200_000
	maxMetadata = 4 << 20
)

// wheel is what one holds.
type wheel struct {
	Name, Version string
	Requires      []string
	// Files are the paths in the environment that it installs, with the checksums of the content.
	Files map[string]uint32
	Size  int64
}

// WheelError says why a wheel is refused.
type WheelError struct {
	Wheel string
	Why   string
}

// Error implements error.
func (e *WheelError) Error() string {
	return fmt.Sprintf("the wheel %s is refused: %s", e.Wheel, e.Why)
}

// openWheel opens a wheel's archive, and says how many bytes it has.
func openWheel(file string) (_ *os.File, size int64, err error) {
	archive, err := openRegular(file)
	if err != nil {
		return nil, 0, err
	}
	info, err := archive.Stat()
	if err != nil {
		archive.Close()
		return nil, 0, err
	}
	return archive, info.Size(), nil
}

// inspectWheel looks at the wheel of a package. site is the directory of modules in the environment, most
// the number of bytes that it may unpack to.
func inspectWheel(file string, p Package, site string, most int64) (*wheel, error) {
	refuse := func(format string, args ...any) error {
		return &WheelError{Wheel: p.Wheel, Why: fmt.Sprintf(format, args...)}
	}
	archive, size, err := openWheel(file)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	length, err := directorySize(archive, size)
	if errors.Is(err, errEnd) {
		return nil, refuse("%v", err)
	}
	if err != nil {
		return nil, refuse("it is no zip archive: %v", err)
	}
	limited := &directoryReader{ReaderAt: archive, left: maxDirectory}
	z, err := zip.NewReader(limited, size)
	if errors.Is(err, errDirectory) {
		return nil, refuse("the names of its members take more than %s", units.Size(maxDirectory).Rounded())
	}
	if errors.Is(err, zip.ErrInsecurePath) {
		err = nil // said below, with the name
	}
	if err != nil {
		return nil, refuse("it is no zip archive: %v", err)
	}
	limited.left = -1
	if err := checkDirectory(z, length); err != nil {
		return nil, refuse("%v", err)
	}
	if len(z.File) > maxMembers {
		return nil, refuse("it has %d members", len(z.File))
	}
	w := &wheel{Files: map[string]uint32{}}
	dist := ""                 // the directory of its metadata
	infos := map[string]bool{} // all that Python takes for the metadata of a package
	for _, f := range z.File {
		if err := checkMember(f); err != nil {
			return nil, refuse("%v", err)
		}
		if w.Size += int64(min(f.UncompressedSize64, 1<<50)); w.Size > most {
			return nil, refuse("it unpacks to more than %s", units.Size(most).Rounded())
		}
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		target, err := installed(f.Name, site)
		if err != nil {
			return nil, refuse("%v", err)
		}
		if isSkeleton(target) {
			return nil, refuse("%q would replace a part of the environment itself", f.Name)
		}
		if _, twice := w.Files[target]; twice {
			return nil, refuse("%q is in it twice", f.Name)
		}
		w.Files[target] = f.CRC32
		if info := distribution(target, site); info != "" {
			infos[info] = true
		}
		if dir, name := path.Split(f.Name); name == "METADATA" && strings.HasSuffix(dir, ".dist-info/") && strings.Count(dir, "/") == 1 {
			if dist != "" {
				return nil, refuse("it has several .dist-info directories")
			}
			dist = dir
		}
	}
	if dist == "" {
		return nil, refuse("it has no metadata")
	}
	for _, info := range slices.Sorted(maps.Keys(infos)) {
		egg, isEgg := strings.CutSuffix(strings.ToLower(info), ".egg-info")
		name, _, _ := strings.Cut(egg, "-")
		if info+"/" != dist && (!isEgg || NormalizeName(name) != p.Name) {
			return nil, refuse("it holds metadata that is of another package: %q", info)
		}
	}
	metadata, err := readMember(z, dist+"METADATA")
	if err != nil {
		return nil, refuse("its metadata can't be read: %v", err)
	}
	w.readMetadata(metadata)
	if NormalizeName(w.Name) != p.Name || !sameVersion(w.Version, p.Version) {
		return nil, refuse("it says that it is %s %s", clip(w.Name, 80), clip(w.Version, 80))
	}
	scripts, err := readMember(z, dist+"entry_points.txt")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, refuse("its entry points can't be read: %v", err)
	}
	for _, name := range entryPoints(scripts) {
		target := path.Join("bin", name)
		if name != path.Base(name) || isSkeleton(target) || !scriptName().MatchString(name) {
			return nil, refuse("it would make a command %q", name)
		}
		w.Files[target] = crcOf(scripts)
	}
	return w, nil
}

// maxDirectory bounds the names of a wheel's members, with what belongs to each: they are read into memory at once.
const maxDirectory = 24 << 20

var errDirectory = errors.New("the directory of the archive is too large")

// directoryReader is an archive of which only so many bytes can be read.
type directoryReader struct {
	io.ReaderAt
	left int // -1 for no bound
}

// ReadAt implements [io.ReaderAt].
func (r *directoryReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	if r.left >= 0 {
		if n > r.left {
			return 0, errDirectory
		}
		r.left -= n
	}
	return n, err
}

var scriptName = pattern.Lazy(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)

// crcOf tells entry points of two wheels apart; equal ones are no collision.
func crcOf(text string) uint32 {
	sum := sha256.Sum256([]byte(text))
	return uint32(sum[0])<<24 | uint32(sum[1])<<16 | uint32(sum[2])<<8 | uint32(sum[3])
}

func sameVersion(a, b string) bool {
	va, errA := ParseVersion(a)
	vb, errB := ParseVersion(b)
	return errA == nil && errB == nil && va.Compare(vb) == 0
}

// checkMember refuses names that lead out and modes that no module needs.
func checkMember(f *zip.File) error {
	name := strings.TrimSuffix(f.Name, "/")
	if !fs.ValidPath(name) || name == "." || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }) || len(name) > 1024 {
		return fmt.Errorf("the name of a member leads out of it, or is none: %q", clip(f.Name, 200))
	}
	if other := unicodeName(f); other != "" && other != f.Name {
		return fmt.Errorf("the member %q has the name %q as well", clip(f.Name, 200), clip(other, 200))
	}
	mode := f.Mode()
	switch {
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return fmt.Errorf("the member %q has a set-id bit", f.Name)
	case mode&fs.ModeType&^fs.ModeDir != 0:
		return fmt.Errorf("the member %q is a %s", f.Name, kindOf(mode))
	}
	return nil
}

// unicodeName is the name that a member has beside its own, which Python takes in place of that since 3.12; "" if it
// has none. (The extra field 0x7075 of APPNOTE.TXT, 4.6.9: a version, a checksum of the other name, and the name.)
func unicodeName(f *zip.File) string {
	for extra := f.Extra; len(extra) >= 4; {
		id, size := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if extra = extra[4:]; size > len(extra) {
			return ""
		}
		if id == 0x7075 && size > 5 {
			return string(extra[5:size])
		}
		extra = extra[size:]
	}
	return ""
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode&fs.ModeDevice != 0:
		return "device"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "special file"
}

// installed gives the path in the environment that a member is installed at.
func installed(name, site string) (string, error) {
	top, rest, _ := strings.Cut(name, "/")
	if !strings.HasSuffix(top, ".data") || rest == "" {
		return path.Join(site, name), nil
	}
	kind, rest, _ := strings.Cut(rest, "/")
	if rest == "" {
		return "", fmt.Errorf("the member %q belongs nowhere", clip(name, 200))
	}
	switch kind {
	case "purelib", "platlib":
		return path.Join(site, rest), nil
	case "scripts":
		return path.Join("bin", rest), nil
	case "headers":
		return path.Join("include/site", strings.TrimSuffix(top, ".data"), rest), nil
	case "data":
		return rest, nil
	}
	return "", fmt.Errorf("the member %q belongs nowhere", clip(name, 200))
}

// distribution gives the directory or file by which Python sees a package that is installed, if a path in the
// environment is that or in it; else "". Case does not count (importlib.metadata).
func distribution(target, site string) string {
	rest, ok := strings.CutPrefix(target, site+"/")
	top, _, _ := strings.Cut(rest, "/")
	if low := strings.ToLower(top); ok && (strings.HasSuffix(low, ".dist-info") || strings.HasSuffix(low, ".egg-info")) {
		return top
	}
	return ""
}

var skeletonName = pattern.Lazy(`^(pyvenv\.cfg|lib64(/.*)?|bin/(python|pypy)[0-9.]*)$`)

// isSkeleton reports the paths that make a directory an environment.
func isSkeleton(name string) bool { return skeletonName().MatchString(name) }

func readMember(z *zip.Reader, name string) (string, error) {
	i := slices.IndexFunc(z.File, func(f *zip.File) bool { return f.Name == name })
	if i < 0 {
		return "", fs.ErrNotExist
	}
	r, err := z.File[i].Open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxMetadata+1))
	if err == nil && len(text) > maxMetadata {
		err = fmt.Errorf("longer than %d bytes", maxMetadata)
	}
	return string(text), err
}

// readMetadata reads the headers that matter here. The description, after an empty line, is not looked at.
func (w *wheel) readMetadata(text string) {
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, maxMetadata+1)
	for lines.Scan() && lines.Text() != "" {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(key) {
		case "name":
			w.Name = cmp.Or(w.Name, value) // the first is what Python reads
		case "version":
			w.Version = cmp.Or(w.Version, value)
		case "requires-dist":
			w.Requires = append(w.Requires, value)
		}
	}
}

// entryPoints names the commands that are made for a wheel.
func entryPoints(text string) []string {
	var names []string
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") { // as importlib.metadata reads it
			section = strings.Trim(line, "[] ")
			continue
		}
		name, _, ok := strings.Cut(line, "=")
		if ok && (section == "console_scripts" || section == "gui_scripts") && !strings.HasPrefix(line, "#") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// hashFile gives the sha256 of a file that somebody hostile may have put there.
func hashFile(file string) (string, int64, error) {
	f, err := openRegular(file)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), n, err
}
