package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// pathKeys are the keys of the configuration whose values are paths of the host.
var pathKeys = [...]string{"sandbox.read", "packages.cert", "python.interpreter", "python.deps"}

// fromHome puts the person's home directory in place of a leading "~", as the shell does that they copied the path from. It is done
// wherever airlock takes a path, since configuration files and clients' argument lists pass through no shell. Other
// people's homes, "~name", are not looked up.
func fromHome(path, home string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(home, path[1:])
	}
	return path
}

// path is an argument of the command line that is a path.
func (a app) path(argument string) string {
	p, err := findPlaces(a.environ)
	if err != nil {
		return argument // and whoever needs a home says that there is none
	}
	return fromHome(argument, p.home)
}

// fromHome is that for a value of the key; a value that holds no path of the host stays as it is.
func (k configKey) fromHome(value any, home string) any {
	if !slices.Contains(pathKeys[:], k.name) {
		return value
	}
	if path, ok := value.(string); ok {
		return fromHome(path, home)
	}
	paths := slices.Clone(value.([]string))
	for i, path := range paths {
		paths[i] = fromHome(path, home)
	}
	return paths
}
