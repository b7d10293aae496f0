package envs

import (
	_ "embed" // the stand-in
	"errors"
	"os"
	"path/filepath"
	"slices"
)

//go:embed stub.sh
var stub string

// StubNames are the programs that have a stand-in, which refuses what installs and executes the program itself
// for the rest. It is for what reading a command can't see, such as a script or a Makefile.
var StubNames = []string{
	"pip", "pip3", "pip3.8", "pip3.9", "pip3.10", "pip3.11", "pip3.12", "pip3.13", "pip3.14", "easy_install", "pipx", "uv", "conda", "mamba", "micromamba",
	"poetry", "pdm", "pipenv", "apt", "apt-get", "aptitude", "dnf", "yum", "apk", "npm", "pnpm", "yarn", "R", "Rscript",
}

// Stubs returns a directory with the stand-ins of some programs: those that runs have. There is none for a
// program that a run would not find.
func (s *Store) Stubs(programs []string) (string, error) {
	programs = slices.Clone(programs)
	slices.Sort(programs)
	dir := s.path("stubs-" + digestOf([]any{stub, programs})[:16])
	if exists(dir) {
		return dir, nil
	}
	w, err := s.newWork()
	if err != nil {
		return "", err
	}
	defer w.close()
	for i, name := range programs {
		file := filepath.Join(w.dir, name)
		if i == 0 {
			err = errors.Join(os.WriteFile(file, []byte(stub), 0o555), os.Chmod(file, 0o555))
		} else {
			err = os.Link(filepath.Join(w.dir, programs[0]), file)
		}
		if err != nil {
			return "", err
		}
	}
	if err := os.Chmod(w.dir, 0o755); err != nil {
		return "", err
	}
	err = os.Rename(w.dir, dir)
	if err != nil && exists(dir) { // another server was faster
		err = nil
	}
	return dir, err
}
