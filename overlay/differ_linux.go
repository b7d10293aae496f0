package overlay

import (
	"fmt"
	"io"
	"strings"
)

// version is what was at a path at one time.
type version struct {
	inode
	content []byte // of a text file, or of a link
	binary  bool   // or too large to be shown, or unreadable
}

func versionAt(t *tree, path string) version {
	i, err := t.stat(path)
	v := version{inode: i}
	switch {
	case err != nil:
		v.binary = true
	case i.kind == symlink:
		text, err := t.readlink(path)
		v.content, v.binary = []byte(text), err != nil
	case i.kind == regular && i.size <= diffLimit:
		f, err := t.file(path)
		if err != nil {
			v.binary = true
			return v
		}
		defer f.Close()
		v.content, err = io.ReadAll(io.LimitReader(f, diffLimit))
		v.binary = err != nil || !isText(v.content)
	default:
		v.binary = true
	}
	return v
}

// differ writes a diff. prefix leads from the workspace to the directory whose paths it is given.
type differ struct {
	out    io.Writer
	prefix string
}

// file writes the difference of two versions of a file or link.
func (d differ) file(path string, a, b version) error {
	if a.kind != absent && b.kind != absent && a.kind != b.kind {
		if err := d.file(path, a, version{}); err != nil {
			return err
		}
		return d.file(path, version{}, b)
	}
	var text strings.Builder
	path = joinPath(d.prefix, path)
	aName, bName := Literal("a/"+path), Literal("b/"+path)
	fmt.Fprintf(&text, "diff %s %s\n", aName, bName)
	switch {
	case a.kind == absent:
		fmt.Fprintf(&text, "new %s mode %04o\n", kindNames[b.kind], b.mode)
		aName = "/dev/null"
	case b.kind == absent:
		fmt.Fprintf(&text, "deleted %s mode %04o\n", kindNames[a.kind], a.mode)
		bName = "/dev/null"
	case a.mode != b.mode && a.kind != symlink:
		fmt.Fprintf(&text, "old mode %04o\nnew mode %04o\n", a.mode, b.mode)
	}
	if a.binary || b.binary {
		fmt.Fprintf(&text, "Binary files %s and %s differ\n", aName, bName)
	} else if string(a.content) != string(b.content) {
		fmt.Fprintf(&text, "--- %s\n+++ %s\n", aName, bName)
		unified(&text, a.content, b.content)
	}
	_, err := io.WriteString(d.out, text.String())
	return err
}

// say writes a sentence that names a path.
func (d differ) say(before, path, after string) error {
	_, err := io.WriteString(d.out, before+Literal(joinPath(d.prefix, path))+after+"\n")
	return err
}
