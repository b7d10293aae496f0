package overlay

import (
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A branch that is checked out in another working tree must not move under it: the next commit there would take
// back what came in. git refuses to, but a run can write a ref without git.

// gitRefLimit bounds what is read of a ref, and packedRefsLimit of all the packed ones.
const (
	gitRefLimit     = 4 << 10
	packedRefsLimit = 64 << 20
)

// settleShared leaves out of a landing in a shared repository what other working trees go by.
func (c *collector) settleShared() error {
	if c.filter.shared == nil {
		return nil
	}
	if slices.ContainsFunc(c.withheld, func(w Withheld) bool { return w.Path == shallowFile }) {
		c.changes = nil
		c.withhold(".", "would change where history ends for other working trees")
		return nil
	}
	if !slices.ContainsFunc(c.changes, func(ch change) bool {
		return ch.tips == nil && (ch.path == "packed-refs" || strings.HasPrefix(ch.path+"/", "refs/"))
	}) {
		return nil
	}
	why, err := c.harmsOthers()
	if why != "" {
		c.changes = nil
		c.withhold(".", why)
	}
	return err
}

// harmsOthers says why the landing would be felt in working trees other than the run's own, "" if it would not: it
// leaves refs that git can't read, or moves one that is checked out there or that replaces objects for all.
func (c *collector) harmsOthers() (why string, err error) {
	var packed [2]map[string]string
	var texts [2]string
	for i, side := range []gitSide{{c, false}, {c, true}} {
		text, err := side.read("packed-refs", packedRefsLimit)
		if err != nil {
			return "", err
		}
		var whole bool
		texts[i] = string(text)
		if packed[i], whole = packedRefs(texts[i]); side.run && !whole && texts[1] != texts[0] {
			return "packed-refs would be one that git can't read", nil
		}
	}
	ref, err := c.movesOthers(packed)
	if ref != "" {
		why = "would move " + Quote(ref) + ", which other working trees have checked out or go by"
	}
	return why, err
}

// movesOthers names a ref that the landing would move and that is checked out in a working tree other than the
// run's own, or that replaces objects for all of them; "" if there is none. packed are the packed refs of the host
// and of the run.
func (c *collector) movesOthers(packed [2]map[string]string) (ref string, err error) {
	heads, err := c.otherHeads()
	if err != nil {
		return "", err
	}
	for _, side := range packed {
		for ref := range side {
			if strings.HasPrefix(ref, "refs/replace/") && packed[0][ref] != packed[1][ref] {
				return ref, nil
			}
		}
	}
	for i := 0; i < len(heads); i++ {
		var value [2]string
		for k, side := range []gitSide{{c, false}, {c, true}} {
			text, err := side.read(heads[i], gitRefLimit)
			if err != nil {
				return "", err
			}
			if value[k] = strings.TrimSpace(string(text)); value[k] == "" {
				value[k] = packed[k][heads[i]]
			}
		}
		if value[0] != value[1] {
			return heads[i], nil
		}
		if next, symbolic := symbolicRef(value[0]); symbolic && len(heads) < 1000 {
			heads = append(heads, next)
		}
	}
	return "", nil
}

// otherHeads lists the refs that are checked out in the other working trees, as the host has them.
func (c *collector) otherHeads() (heads []string, err error) {
	host := gitSide{c, false}
	trees, err := c.host.list("worktrees")
	if err != nil && !is(err, unix.ENOENT, unix.ENOTDIR) {
		return nil, err
	}
	files := []string{"HEAD"}
	for _, name := range trees {
		if name != c.filter.shared.worktree {
			files = append(files, "worktrees/"+name+"/HEAD")
		}
	}
	for _, file := range files {
		text, err := host.read(file, gitRefLimit)
		if err != nil {
			return nil, err
		}
		if ref, symbolic := symbolicRef(string(text)); symbolic {
			heads = append(heads, ref)
		}
	}
	return heads, nil
}

// gitSide is a git directory as the host has it, or as the run left it.
type gitSide struct {
	c   *collector
	run bool
}

// read returns the content of a regular file, nil where there is none.
func (s gitSide) read(path string, limit int64) ([]byte, error) {
	from := s.c.host
	if s.run {
		in, err := s.inLayer(path)
		if err != nil {
			return nil, err
		}
		switch in {
		case layerGone:
			return nil, nil
		case layerHas:
			from = s.c.upper
		}
	}
	i, err := from.stat(path)
	if err != nil || i.kind != regular {
		return nil, err
	}
	f, err := from.file(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = from.fail("read", path, unix.EFBIG)
	}
	return text, err
}

// What a layer says of a path.
const (
	layerSilent = iota // it shows the lower one's
	layerHas
	layerGone
)

// inLayer walks to a path of the layer.
func (s gitSide) inLayer(path string) (int, error) {
	below := ""
	opaque := false
	for name := range strings.SplitSeq(path, "/") {
		dir := below
		below = joinPath(below, name)
		e := entry{name: name, path: below}
		var missing bool
		err := s.c.upper.at(dir, func(fd int) error {
			m, _, err := readMarks(fd, ".")
			if err != nil {
				return err
			}
			opaque = opaque || m.opaque
			if err := s.c.read(fd, &e, m); err != nil {
				return err
			}
			missing = e.run.kind == absent
			return nil
		})
		switch {
		case err != nil:
			return 0, err
		case missing && !opaque:
			return layerSilent, nil
		case missing, e.gone:
			return layerGone, nil
		case below != path && e.run.kind != directory:
			return layerGone, nil
		}
	}
	return layerHas, nil
}
