package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// The renames that are done both on a plain filesystem and in a run, as one table.

// renameCase does something in a tree that growTree made, which is the working directory.
type renameCase struct {
	name string
	do   func() error
}

func renaming(old, new string) renameCase {
	return renameCase{fmt.Sprintf("%.20q (%d) to %.20q (%d)", old, len(old), new, len(new)), func() error { return unix.Rename(old, new) }}
}

func renaming2(old, new string, flags uint) renameCase {
	return renameCase{fmt.Sprintf("%q to %q, flags %d", old, new, flags), func() error {
		return unix.Renameat2(unix.AT_FDCWD, old, unix.AT_FDCWD, new, flags)
	}}
}

// relativeTo renames by descriptors, of which a negative one opens nothing.
func relativeTo(name string, oldDir, newDir string, flags int, old, new string) renameCase {
	return renameCase{name, func() error {
		a, err := unix.Open(oldDir, flags|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", oldDir, err)
		}
		b, err := unix.Open(newDir, flags|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", newDir, err)
		}
		return unix.Renameat(a, old, b, new)
	}}
}

// after does something first.
func after(name string, first func() error, c renameCase) renameCase {
	return renameCase{name + ", " + c.name, func() error {
		if err := first(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return c.do()
	}}
}

func mkdirs(names ...string) func() error {
	return func() error {
		for _, n := range names {
			if err := os.MkdirAll(n, 0o755); err != nil {
				return err
			}
		}
		return nil
	}
}

var renameCases = []renameCase{
	renaming("d", "n"),
	renaming("d", "d"),
	renaming("d", "e"),
	renaming("d", "empty"),
	renaming("d", "f"),
	renaming("d", "to-d"),
	renaming("d", "dangling"),
	renaming("d", "e/n"),
	renaming("d", "d/n"),
	renaming("d", "d/sub/n"),
	renaming("d/sub", "d"),
	renaming("d/sub", "n"),
	renaming("d/sub", "e/n"),
	renaming("d", "missing/n"),
	renaming("d", "f/n"),
	renaming("missing", "n"),
	renaming("missing/d", "n"),
	renaming("f/d", "n"),
	renaming("f", "n"),
	renaming("f", "empty"),
	renaming("f", "d"),
	renaming("empty", "n"),
	renaming("empty", "e"),
	renaming("d/", "n"),
	renaming("d", "n/"),
	renaming("d//", "n///"),
	renaming(".//d", "./e//n"),
	renaming("d/", "empty/"),
	renaming("d/", "f/"),
	renaming("f/", "n"),
	renaming("f", "n/"),
	renaming("to-d", "n"),
	renaming("to-d/", "n"),
	renaming("to-d/sub", "n"),
	renaming("to-d/sub", "to-d/n"),
	renaming("d", "to-d/sub"),
	renaming("dangling/d", "n"),
	renaming("d/loop/x", "n"),
	renaming("dangling", "n"),
	renaming(".", "n"),
	renaming("..", "n"),
	renaming("d/.", "n"),
	renaming("d/sub/..", "n"),
	renaming("d", "."),
	renaming("d", "e/.."),
	renaming("e/../d", "n"),
	renaming("", "n"),
	renaming("d", ""),
	renaming("d", strings.Repeat("n", 255)),
	renaming("d", strings.Repeat("n", 256)),
	renaming(strings.Repeat("./", 2040)+"d", "n"),
	renaming("d", strings.Repeat("./", 2047)+"n"),
	renaming("d", strings.Repeat("./", 2048)+"n"),
	renaming("d", "\xff \n\\"),
	renaming("x/d", "n"),
	renaming("ro", "n"),
	renaming("ro", "e/n"),
	renaming("ro/inner", "n"),
	renaming("ro/inner", "ro/n"),
	renaming("d", "ro/n"),
	renaming("locked", "n"),
	renaming("locked", "e/n"),
	renaming("locked/f", "n"),
	renaming("d", "locked/n"),
	renaming("d", "locked"),
	renaming("p", "n"),
	renaming("p", "e/n"),
	renaming("p/ro", "p/n"),
	renaming("p/none", "p/n"),
	renaming("sticky", "n"),
	renaming("sticky/d", "n"),
	renaming("d", "sticky/n"),
	renaming("setgid", "n"),
	renaming("d", "setgid/n"),
	renaming("setgid/d", "n"),
	renaming("shut/d", "n"),
	renaming("shut", "n"),
	renaming("listed", "n"),
	renaming("listed/d", "n"),
	renaming("default", "n"),
	renaming("default/d", "n"),
	renaming("d", "default/n"),
	renaming2("d", "n", unix.RENAME_NOREPLACE),
	renaming2("d", "e", unix.RENAME_NOREPLACE),
	renaming2("d", "empty", unix.RENAME_NOREPLACE),
	renaming2("d", "f", unix.RENAME_NOREPLACE),
	renaming2("d", "d", unix.RENAME_NOREPLACE),
	renaming2("d", ".", unix.RENAME_NOREPLACE),
	renaming2("d", "dangling", unix.RENAME_NOREPLACE),
	renaming2("d", "e", unix.RENAME_EXCHANGE),
	renaming2("d", "e/x", unix.RENAME_EXCHANGE),
	renaming2("f", "d", unix.RENAME_EXCHANGE),
	renaming2("d", "f", unix.RENAME_EXCHANGE),
	renaming2("d/", "f", unix.RENAME_EXCHANGE),
	renaming2("d", "f/", unix.RENAME_EXCHANGE),
	renaming2("f", "d/sub", unix.RENAME_EXCHANGE),
	renaming2("d", "to-d", unix.RENAME_EXCHANGE),
	renaming2("d", "missing", unix.RENAME_EXCHANGE),
	renaming2("d", "d/sub", unix.RENAME_EXCHANGE),
	renaming2("d/sub", "d", unix.RENAME_EXCHANGE),
	renaming2("p", "d", unix.RENAME_EXCHANGE),
	renaming2("ro", "d", unix.RENAME_EXCHANGE),
	renaming2("ro", "d/sub", unix.RENAME_EXCHANGE),
	renaming2("d", "n", unix.RENAME_EXCHANGE|unix.RENAME_NOREPLACE),
	renaming2("d", "n", 1<<6),
	relativeTo("by descriptors", "d", "e", unix.O_DIRECTORY, "sub", "n"),
	relativeTo("by descriptors that open nothing", "d", "e", unix.O_PATH, "sub", "n"),
	relativeTo("by a descriptor of a file", "f", "e", unix.O_RDONLY, "sub", "n"),
	{"by descriptors that are none", func() error { return unix.Renameat(999, "d", -5, "n") }},
	{"by the upper halves of descriptors, which don't count", func() error {
		old, _ := unix.BytePtrFromString("d")
		new, _ := unix.BytePtrFromString("n")
		return renameRaw(unix.SYS_RENAMEAT2, 1<<32|0xffffff9c, addressOf(old), 7<<32|0xffffff9c, addressOf(new), 1<<40)
	}},
	{"absolute", func() error {
		wd, err := os.Getwd()
		if err != nil {
			return err
		}
		return unix.Rename(wd+"/d", wd+"/n")
	}},
	{"from below", func() error {
		if err := os.Chdir("d/sub"); err != nil {
			return err
		}
		return unix.Rename("../../p", "../../e/n")
	}},
	{"no pointer", func() error { return renameRaw(unix.SYS_RENAMEAT2, 0xffffff9c, 1, 0xffffff9c, 2, 0) }},
	{"one pointer", func() error {
		old, _ := unix.BytePtrFromString("d")
		return renameRaw(unix.SYS_RENAMEAT2, 0xffffff9c, addressOf(old), 0xffffff9c, 1, 0)
	}},
	{"a path at the end of memory", func() error {
		page := os.Getpagesize()
		m, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		defer unix.Munmap(m)
		copy(m[page-4:], "x/d\x00")
		if err := unix.Mprotect(m[page:], unix.PROT_NONE); err != nil {
			return err
		}
		new, _ := unix.BytePtrFromString("n")
		return renameRaw(unix.SYS_RENAMEAT2, 0xffffff9c, addressOf(&m[page-4]), 0xffffff9c, addressOf(new), 0)
	}},
	{"a path over a page", func() error {
		page := os.Getpagesize()
		m, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		defer unix.Munmap(m)
		copy(m[page-2:], "x/d\x00")
		new, _ := unix.BytePtrFromString("n")
		return renameRaw(unix.SYS_RENAMEAT2, 0xffffff9c, addressOf(&m[page-2]), 0xffffff9c, addressOf(new), 0)
	}},
	after("written in", func() error {
		return errors.Join(os.WriteFile("d/a", []byte("changed"), 0o644), os.WriteFile("d/sub/new", nil, 0o644), os.Remove("d/sub/b"),
			os.Chmod("d/sub", 0o700), os.RemoveAll("d/sub/deep"), os.MkdirAll("d/sub/deep", 0o755))
	}, renaming("d", "n")),
	after("over a removed directory", func() error { return os.RemoveAll("e") }, renaming("d", "e")),
	after("over an emptied directory", func() error { return os.Remove("e/x") }, renaming("d", "e")),
	after("over a new directory", mkdirs("n"), renaming("d", "n")),
	after("over a filled new directory", mkdirs("n/x"), renaming("d", "n")),
	after("a new directory", mkdirs("n/x"), renaming("n", "m")),
	after("into a new directory", mkdirs("n"), renaming("d", "n/d")),
	after("a new directory into", mkdirs("n/x"), renaming("n", "d/sub/n")),
	after("back again", func() error { return unix.Rename("d", "n") }, renaming("n", "d")),
	after("again", func() error { return unix.Rename("d", "n") }, renaming("n/sub", "m")),
	after("another in its place", func() error { return errors.Join(unix.Rename("d", "n"), os.Mkdir("d", 0o700)) }, renaming("e", "d")),
	after("in a circle", func() error { return errors.Join(unix.Rename("d", "n"), unix.Rename("e", "d")) }, renaming("n", "e")),
	after("exchanged", func() error {
		return unix.Renameat2(unix.AT_FDCWD, "d", unix.AT_FDCWD, "e", unix.RENAME_EXCHANGE)
	}, renaming("e/sub", "d/sub")),
	after("with its parent", func() error { return unix.Rename("d/sub", "n") }, renaming("d", "n/d")),
}

func renameRaw(nr uintptr, args ...uintptr) error { return raw(nr, args...)() }

// renameResult is what became of a case.
type renameResult struct {
	Error string
	Tree  []string
}

func init() {
	// rename-cases DIR does every case in a directory of its own below DIR, with the rights of a run.
	roles["rename-cases"] = func(args []string) {
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		unix.Umask(0o022)
		results := make(map[string]renameResult)
		for i, c := range renameCases {
			dir := filepath.Join(args[0], caseDir(i))
			if err := os.Chdir(dir); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			r := renameResult{Error: "success"}
			if err := c.do(); err != nil {
				r.Error = err.Error()
			}
			r.Tree = describeTree(dir)
			results[c.name] = r
		}
		_ = json.NewEncoder(os.Stdout).Encode(results)
	}
}

func caseDir(i int) string { return fmt.Sprintf("case-%d", i) }
