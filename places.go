package main

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
)

// places are the directories of the person who runs airlock. Paths are absolute and clean; links in
// them are not followed.
type places struct {
	home   string   // what HOME says, else what the user database says
	homes  []string // both, if they differ: neither may be a workspace
	config string   // airlock's own directories; they need not exist
	state  string
	cache  string
}

// findPlaces follows the XDG base directory specification: a variable that isn't an absolute path is
// passed over.
func findPlaces(environ []string) (places, error) {
	var p places
	if home := lookup(environ, "HOME"); filepath.IsAbs(home) {
		p.homes = append(p.homes, filepath.Clean(home))
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		p.homes = append(p.homes, filepath.Clean(u.HomeDir))
	}
	if len(p.homes) == 0 {
		return places{}, errors.New("no home directory: HOME is not set and the user database has none")
	}
	p.home = p.homes[0]
	base := func(variable, otherwise string) string {
		if dir := lookup(environ, variable); filepath.IsAbs(dir) {
			return filepath.Join(dir, "airlock")
		}
		return filepath.Join(p.home, otherwise, "airlock")
	}
	p.config = base("XDG_CONFIG_HOME", ".config")
	p.state = base("XDG_STATE_HOME", ".local/state")
	p.cache = base("XDG_CACHE_HOME", ".cache")
	return p, nil
}

// enterPlaces is findPlaces for who has nothing to do where the state directory can't be entered.
func enterPlaces(environ []string) (places, error) {
	p, err := findPlaces(environ)
	if err != nil {
		return p, err
	}
	return p, p.enterState()
}

// userFile is the configuration file that is read if no other is named.
func (p places) userFile() string { return filepath.Join(p.config, "config.toml") }

// enterState makes sure that the state directory, if there is one, can be read and entered.
func (p places) enterState() error {
	dir, err := os.Open(p.state)
	if err == nil {
		dir.Close()
		_, err = os.Stat(p.state + string(filepath.Separator) + ".") // which to read it is not enough for
	}
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return nil // what else is wrong is said by who uses it
	}
	return &fault{
		Msg:  "the state directory " + p.state + " can't be entered: " + cause(err).Error(),
		Hint: "make it yours (chown, chmod 700), or set XDG_STATE_HOME",
	}
}

// makeState creates the state directory, which nobody else may look into: it will hold what runs
// changed and what the user approved.
func (p places) makeState() error {
	if err := p.enterState(); err != nil {
		return err
	}
	if err := os.MkdirAll(p.state, 0o700); err != nil {
		return &fault{Msg: "the state directory can't be made: " + err.Error(), Hint: "set XDG_STATE_HOME to a directory that you may write"}
	}
	info, err := os.Stat(p.state)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(p.state, 0o700); err != nil {
		return &fault{Where: p.state, Msg: "others may look into the state directory, and that can't be changed: " + err.Error()}
	}
	return nil
}

// realPath follows the links of the part of path that exists, and leaves the rest as it is.
func realPath(path string) string {
	rest := ""
	for {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return filepath.Join(path, rest)
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = parent
	}
}
