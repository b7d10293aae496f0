package envs

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxModules bounds the extension modules that are looked at.
const maxModules = 5000

// missingLibraries names the shared libraries that extension modules below dir need, and that neither dir
// nor the system has: such a module is installed and yet can't be imported. It is advice: what can't be read
// is passed over.
func missingLibraries(dir string, more []string) []string {
	needs := map[string]string{} // library to the first module that needs it
	have := map[string]bool{}
	n := 0
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.Contains(d.Name(), ".so") {
			return nil
		}
		have[d.Name()] = true
		if n++; n > maxModules {
			return fs.SkipAll
		}
		rel, _ := filepath.Rel(dir, name)
		for _, library := range imported(name) {
			if needs[library] == "" {
				needs[library] = rel
			}
		}
		return nil
	})
	var missing []string
	var system []string
	for library, module := range needs {
		if have[library] || strings.ContainsRune(library, '/') || strings.HasPrefix(library, "ld-linux") {
			continue
		}
		if system == nil {
			system = append(libraryDirs("/etc/ld.so.conf", 0), more...)
		}
		if !slices.ContainsFunc(system, func(d string) bool { return exists(filepath.Join(d, library)) }) {
			missing = append(missing, fmt.Sprintf("%s needs %s", filepath.Base(module), clip(library, 100)))
		}
	}
	slices.Sort(missing)
	return missing[:min(len(missing), 20)]
}

// imported reads the libraries that a module names. A file that is meant to break its reader breaks
// nothing but this.
func imported(name string) (libraries []string) {
	defer func() {
		if recover() != nil {
			libraries = nil
		}
	}()
	f, err := elf.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	libraries, _ = f.ImportedLibraries()
	return libraries[:min(len(libraries), 200)]
}

// libraryDirs are where the system's loader looks.
func libraryDirs(conf string, depth int) []string {
	dirs := []string{"/lib", "/usr/lib", "/lib64", "/usr/lib64"}
	f, err := os.Open(conf)
	if err != nil || depth > 4 {
		return dirs
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		line = strings.TrimSpace(line)
		if glob, ok := strings.CutPrefix(line, "include "); ok {
			files, _ := filepath.Glob(strings.TrimSpace(glob))
			for _, file := range files {
				dirs = append(dirs, libraryDirs(file, depth+1)...)
			}
		} else if filepath.IsAbs(line) {
			dirs = append(dirs, line)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
