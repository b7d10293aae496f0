package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"airlock/internal/configmerge"
	"airlock/internal/untrusted"
)

// maxClientFile bounds what is read of a client's configuration.
const maxClientFile = 4 << 20

// write merges an entry into the client's file, of the workspace dir or the user's, or into file if that is not
// "", and says what it did. The file as it was stays beside it.
func (c client) write(a app, entry map[string]any, dir, file string) error {
	path, err := c.target(a.environ, dir, file)
	if err != nil {
		return err
	}
	before, err := untrusted.ReadFile(filepath.Dir(path), filepath.Base(path), maxClientFile)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isNew {
		return &fault{Where: path, Msg: "it can't be read: " + cause(err).Error(), Hint: c.byHand()}
	}
	after, err := c.merge(before, entry)
	if err != nil {
		return &fault{Where: path, Msg: err.Error(), Hint: "nothing was changed; mend the file, or " + c.byHand()}
	}
	switch {
	case isNew:
		err = create(path, after)
	case bytes.Equal(before, after):
		fmt.Fprintf(a.stdout, "%s has it already\n", path)
		return nil
	default:
		var kept string
		if kept, err = replace(path, before, after); err == nil {
			fmt.Fprintf(a.stdout, "kept %s\n", kept)
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "wrote %s: %s.airlock\n", path, c.servers)
	if c.note != "" {
		fmt.Fprintln(a.stderr, "# "+c.note)
	}
	return nil
}

// byHand is the way out where a file can't be merged into.
func (c client) byHand() string {
	return fmt.Sprintf("put what `airlock client %s` prints into it by hand", c.name)
}

func (c client) merge(text []byte, entry map[string]any) ([]byte, error) {
	if c.toml {
		return configmerge.TOML(text, c.path(), entry, tomlLiterals(entry))
	}
	return configmerge.JSON(text, c.path(), entry)
}

// target is the real path of the file to write; the file need not exist, its directory does. Links on the way to a
// file of the user's are followed. In a workspace, which is somebody else's, they are not.
func (c client) target(environ []string, dir, file string) (string, error) {
	if file != "" {
		path, err := filepath.Abs(file)
		return realPath(path), err
	}
	if c.perUser != nil {
		p, err := findPlaces(environ)
		if err != nil {
			return "", err
		}
		path := realPath(c.perUser(p, environ))
		return path, os.MkdirAll(filepath.Dir(path), 0o700)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, filepath.FromSlash(c.own))
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if real := realPath(path); real != path {
		return "", &fault{Where: path, Msg: "a link leads from there to " + tomlText(real), Hint: "name the file that you mean with --file"}
	}
	return path, nil
}

func create(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// replace puts a text in the place of a file, whole or not at all, and what was there beside it. It returns
// where that is.
func replace(path string, before, after []byte) (kept string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	kept = path + ".bak"
	for n := 2; ; n++ {
		if err = create(kept, before); !errors.Is(err, fs.ErrExist) {
			break
		}
		kept = fmt.Sprintf("%s.bak.%d", path, n)
	}
	if err != nil {
		return "", err
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".airlock-client-*")
	if err != nil {
		return "", err
	}
	_, err = next.Write(after)
	err = errors.Join(err, next.Chmod(info.Mode().Perm()), next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(next.Name()))
	}
	return kept, os.Chmod(kept, info.Mode().Perm())
}
