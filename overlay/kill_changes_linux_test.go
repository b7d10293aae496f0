package overlay

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// changeSet makes a workspace, what a run does to it, and what the host does meanwhile, with every
// kind of change a few times.
type changeSet struct{ dir, upper string }

const changeSets = 4

func (c changeSet) setup() {
	for i := range changeSets {
		at := func(name string) string { return filepath.Join(c.dir, fmt.Sprintf("%s%d", name, i)) }
		write := func(name, text string, mode os.FileMode) {
			must(os.WriteFile(at(name), []byte(text), 0o600))
			must(os.Chmod(at(name), mode))
		}
		write("modified", "before\n", 0o644)
		write("script", "before\n", 0o755)
		write("deleted", "deleted\n", 0o640)
		write("twice", "linked\n", 0o644)
		must(os.Link(at("twice"), at("linked")))
		must(os.Symlink("before", at("link")))
		must(os.Symlink("before", at("linkgone")))
		write("file-to-dir", "was a file\n", 0o600)
		write("file-to-link", "was a file\n", 0o600)
		must(os.Symlink("before", at("link-to-file")))
		must(os.Mkdir(at("dir-to-file"), 0o750))
		must(os.WriteFile(filepath.Join(at("dir-to-file"), "x"), []byte("x\n"), 0o644))
		must(os.MkdirAll(filepath.Join(at("gone"), "deep"), 0o755))
		must(os.WriteFile(filepath.Join(at("gone"), "deep", "x"), []byte("x\n"), 0o644))
		must(os.Symlink("x", filepath.Join(at("gone"), "deep", "l")))
		must(os.Mkdir(filepath.Join(at("gone"), "empty"), 0o711))
		must(os.Mkdir(at("mode"), 0o755))
		must(os.WriteFile(filepath.Join(at("mode"), "x"), []byte("x\n"), 0o644))
		must(os.Mkdir(at("ro"), 0o755))
		for _, name := range []string{"a", "b"} {
			must(os.WriteFile(filepath.Join(at("ro"), name), []byte("in ro\n"), 0o444))
		}
		must(os.Chmod(at("ro"), 0o555))
		write("conflict", "before\n", 0o644)
		write("conflict-deleted", "before\n", 0o644)
		write("kept", "kept\n", 0o644)
	}
}

func (c changeSet) run() {
	whiteout := func(path string) { must(unix.Mknod(path, unix.S_IFCHR, 0)) }
	mark := func(path, name, value string) { must(unix.Setxattr(path, "user.overlay."+name, []byte(value), 0)) }
	for i := range changeSets {
		at := func(name string) string { return filepath.Join(c.upper, fmt.Sprintf("%s%d", name, i)) }
		write := func(path, text string, mode os.FileMode) {
			must(os.WriteFile(path, []byte(text), 0o600))
			must(os.Chmod(path, mode))
		}
		write(at("modified"), "after\n", 0o644)
		mark(at("modified"), "origin", "x")
		write(at("script"), "before\n", 0o744)
		whiteout(at("deleted"))
		write(at("twice"), "after\n", 0o644)
		must(os.Symlink("after", at("link")))
		whiteout(at("linkgone"))
		must(os.MkdirAll(filepath.Join(at("file-to-dir"), "sub"), 0o755))
		write(filepath.Join(at("file-to-dir"), "sub", "x"), "new\n", 0o644)
		must(os.Chmod(at("file-to-dir"), 0o500))
		must(os.Symlink("after", at("file-to-link")))
		write(at("link-to-file"), "after\n", 0o644)
		write(at("dir-to-file"), "after\n", 0o644)
		whiteout(at("gone"))
		must(os.Mkdir(at("mode"), 0o700))
		mark(at("mode"), "origin", "x")
		must(os.Mkdir(at("ro"), 0o700))
		write(filepath.Join(at("ro"), "a"), "after\n", 0o644)
		whiteout(filepath.Join(at("ro"), "b"))
		mark(at("ro"), "origin", "x")
		must(os.Chmod(at("ro"), 0o555))
		write(at("conflict"), "run's\n", 0o644)
		whiteout(at("conflict-deleted"))
		write(at("new"), "new\n", 0o600)
		must(os.Link(at("new"), at("new-linked")))
		must(os.Symlink("/nowhere", at("new-link")))
		must(os.MkdirAll(filepath.Join(at("new-dir"), "__pycache__"), 0o755))
		write(filepath.Join(at("new-dir"), "__pycache__", "c"), "c\n", 0o644)
		must(os.MkdirAll(filepath.Join(at("new-dir"), "empty"), 0o755))
		write(filepath.Join(at("new-dir"), "x"), "new\n", 0o400)
		must(os.Chmod(at("new-dir"), 0o555))
	}
}

func (c changeSet) host() {
	for i := range changeSets {
		for _, name := range []string{"conflict", "conflict-deleted"} {
			must(os.WriteFile(filepath.Join(c.dir, fmt.Sprintf("%s%d", name, i)), []byte("host's\n"), 0o644))
		}
	}
}

// snapshot says what is in a directory: kind, mode and content, and of files and links, where identity
// is asked for, inode and mtime.
func snapshot(t *testing.T, dir string, identity bool) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := statAt(unix.AT_FDCWD, path)
		if err != nil {
			return err
		}
		s := fmt.Sprintf("%s %04o", kindNames[i.kind], i.mode)
		switch i.kind {
		case regular:
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			s += " " + string(text)
		case symlink:
			text, err := os.Readlink(path)
			if err != nil {
				return err
			}
			s = "link to " + text
		}
		if identity {
			s += fmt.Sprint(" inode ", i.ino)
			if i.kind != directory {
				s += fmt.Sprint(" of ", i.mtime)
			}
		}
		found[strings.TrimPrefix(path, dir)] = s
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func contentOf(what string) string {
	if rest, ok := strings.CutPrefix(what, "file "); ok {
		_, content, _ := strings.Cut(rest, " ")
		return content
	}
	return what
}
