package envs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// mountPoint is where steps and runs see an environment.
const mountPoint = "/env"

// skeleton is what makes a directory a virtual environment of an interpreter: the same that
// "python -m venv --without-pip" leaves, without its activation scripts.
type skeleton struct {
	dirs  []string
	links map[string]string
	files map[string]string
}

func (p *python) skeleton() skeleton {
	return skeleton{
		dirs: []string{"bin", "include", "lib", filepath.Dir(p.site()), p.site()},
		links: map[string]string{
			"bin/python":  p.Executable,
			"bin/python3": "python",
			"bin/python" + p.Markers["python_version"]: "python",
			"lib64": "lib",
		},
		files: map[string]string{
			"pyvenv.cfg": fmt.Sprintf("home = %s\ninclude-system-site-packages = false\nversion = %s\n", filepath.Dir(p.Executable), p.Version),
		},
	}
}

// make makes it in an empty directory.
func (k skeleton) make(dir string) error {
	for _, d := range k.dirs {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	var errs []error
	for name, text := range k.links {
		errs = append(errs, os.Symlink(text, filepath.Join(dir, name)))
	}
	for name, text := range k.files {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o444))
	}
	return errors.Join(errs...)
}

// has reports whether a path, relative to the environment, is a part of it that is no directory.
func (k skeleton) has(name string) bool {
	_, link := k.links[name]
	_, file := k.files[name]
	return link || file
}

// check reports what an installation did to it.
func (k skeleton) check(dir string) error {
	for name, text := range k.links {
		if got, err := os.Readlink(filepath.Join(dir, name)); err != nil || got != text {
			return fmt.Errorf("the installation replaced %s, a part of the environment itself", name)
		}
	}
	for name, text := range k.files {
		f, err := openRegular(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("the installation replaced %s, a part of the environment itself", name)
		}
		got := make([]byte, len(text)+1)
		n, _ := f.Read(got)
		f.Close()
		if string(got[:n]) != text {
			return fmt.Errorf("the installation changed %s, a part of the environment itself", name)
		}
	}
	return nil
}
