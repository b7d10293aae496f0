package overlay

import (
	"bytes"
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"airlock/internal/gitconfig"
)

// heldBack returns why a file or link of the layer does not land although it could, "" if it does.
func (c *collector) heldBack(p place, e entry) (string, error) {
	if len(p.gits) > 0 && e.run.kind == regular && isGitLock(inUnit(reportPath(p.gits[len(p.gits)-1]), e.path)) {
		return "left by a git that was ended", nil
	}
	if !c.protected(e.path, e.run.kind, p.gits) {
		if len(p.gits) > 0 && e.run.kind == regular && isTodo(e.path) {
			return c.todoRuns(e)
		}
		return "", nil
	}
	if e.run.kind != regular || !c.filter.onlyConfig(e.path, p.gits) {
		return whyProtected, nil
	}
	refused, err := c.configRefused(p, e)
	if err != nil || refused == nil {
		return "", err
	}
	return whyProtected + ": " + Quote(refused.Error()), nil
}

// configRefused judges the configuration of a git directory by its content. refused is nil if it lands.
func (c *collector) configRefused(p place, e entry) (refused, err error) {
	after, names, refused, err := readConfig(c.upper, e.path)
	switch {
	case err != nil || refused != nil:
		return refused, err
	case names > 1:
		// Whoever writes the other name would write this one.
		return errors.New("it has another name"), nil
	}
	var before []gitconfig.Entry
	switch e.host.kind {
	case absent:
		if e.run.mode&0o002 != 0 {
			return errors.New("everyone may write it"), nil
		}
	case regular:
		if e.run.mode != e.host.mode {
			return errors.New("its mode was changed"), nil
		}
		if p.swapped || c.touched(e.path, e.host) {
			return errors.New("someone else changed it meanwhile"), nil
		}
		if before, _, refused, err = readConfig(c.host, e.path); err != nil || refused != nil {
			return refused, err
		}
	default:
		return errors.New("it took the place of something else"), nil
	}
	return gitconfig.Change{Before: before, After: after, New: p.newGit}.Refused(), nil
}

// readConfig parses a configuration file, and counts its names. What is not one, or not ours to read, is refused.
func readConfig(t *tree, path string) (entries []gitconfig.Entry, names uint64, refused, err error) {
	f, err := t.file(path)
	if is(err, unix.EACCES, unix.EPERM, unix.ENOENT, unix.ELOOP, unix.ENXIO, unix.EXDEV) {
		return nil, 0, errors.New("it can't be read"), nil
	}
	if err != nil {
		return nil, 0, nil, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, 0, nil, t.fail("stat", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, 0, errors.New("it is no file"), nil
	}
	names = uint64(st.Nlink)
	var text bytes.Buffer
	if _, err := io.Copy(&text, io.LimitReader(f, gitconfig.MaxSize+1)); err != nil {
		return nil, 0, nil, t.fail("read", path, err)
	}
	entries, refused = gitconfig.Parse(text.Bytes())
	return entries, names, refused, nil
}
