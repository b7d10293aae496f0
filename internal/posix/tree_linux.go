package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// describe says what is at a path: all that a program sees of it but numbers that differ from tree to tree,
// such as those of inodes, and what a filesystem chooses, such as the size of a directory.
func describe(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", err
	}
	text := fmt.Sprintf("%06o", st.Mode)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		text += fmt.Sprintf(" %d bytes, %d links", st.Size, st.Nlink)
	case unix.S_IFLNK:
		target, err := os.Readlink(path)
		text += " to " + strconv.Quote(resultText(target, err))
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Mtim == longAgo {
		text += " old"
	}
	value := make([]byte, 1024)
	if n, err := unix.Lgetxattr(path, "user.test", value); err == nil {
		text += " user.test=" + string(value[:n])
	}
	return text, nil
}

// describeTree lists a tree, a line for each entry, with what files hold. On the host it also says which files are
// links of each other, which in a run inode numbers don't always tell, and looks into what its owner may not
// read, and leaves it as it was.
func describeTree(dir string, host bool) []string {
	var lines []string
	first := make(map[uint64]string) // of the links of an inode
	var look func(path string)
	look = func(path string) {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			name = path
		}
		text, err := describe(path)
		line := strconv.Quote(name) + " " + resultText(text, err)
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil {
			lines = append(lines, line)
			return
		}
		mode := st.Mode & 0o7777
		if kind := st.Mode & unix.S_IFMT; host && mode&0o700 != 0o700 && (kind == unix.S_IFDIR || kind == unix.S_IFREG) {
			_ = unix.Chmod(path, mode|0o700)
			defer unix.Chmod(path, mode)
		}
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			text, err := operation{a: path}.read()
			line += " " + resultText(text, err)
			if host && st.Nlink > 1 {
				if first[st.Ino] == "" {
					first[st.Ino] = name
				}
				line += " is " + strconv.Quote(first[st.Ino])
			}
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			lines = append(lines, line)
			return
		}
		names, err := listDirectory(path)
		if err != nil {
			line += " " + resultText("", err)
		}
		lines = append(lines, line)
		for _, name := range names {
			if host && name == ".git" {
				continue // git says what is in it: an index holds inode numbers
			}
			look(filepath.Join(path, name))
		}
	}
	look(dir)
	return lines
}

// listDirectory gives the names in a directory, sorted.
func listDirectory(path string) ([]string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// difference tells two lists of lines apart: the lines that only one has, from the first that differs.
func difference(bare, run []string) string {
	const most = 10
	var text []string
	for len(bare) > 0 || len(run) > 0 {
		switch {
		case len(bare) > 0 && len(run) > 0 && bare[0] == run[0]:
			bare, run = bare[1:], run[1:]
			continue
		case len(bare) > 0 && !slices.Contains(run, bare[0]):
			text, bare = append(text, "bare: "+bare[0]), bare[1:]
		case len(run) > 0:
			text, run = append(text, "run:  "+run[0]), run[1:]
		default:
			text, bare = append(text, "bare: "+bare[0]), bare[1:]
		}
	}
	return strings.Join(text[:min(len(text), most)], "\n")
}
