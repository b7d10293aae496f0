package envs

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
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

const (
	// maxNeeded bounds the libraries that are read of one module, maxLibraryName the length of their names, maxDynamic
	// what is read of the table that has them.
	maxNeeded      = 200
	maxLibraryName = 256
	maxDynamic     = 64 << 10
)

// imported reads the libraries that a module names, as a loader does: by its program headers. A file that is meant to
// break its reader breaks nothing but this.
func imported(name string) (libraries []string) {
	defer func() {
		if recover() != nil {
			libraries = nil
		}
	}()
	file, err := openRegular(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	f, err := elf.NewFile(&withoutSections{ReaderAt: file})
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_DYNAMIC })
	if i < 0 {
		return nil
	}
	table := make([]byte, min(f.Progs[i].Filesz, maxDynamic))
	if _, err := f.Progs[i].ReadAt(table, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	var needed []uint64 // as offsets from names
	var names uint64
	for tag, value := range dynamic(f, table) {
		switch tag {
		case elf.DT_NEEDED:
			needed = append(needed, value)
		case elf.DT_STRTAB:
			names = value
		}
	}
	for _, at := range needed[:min(len(needed), maxNeeded)] {
		if library := textAt(f, names+at); library != "" {
			libraries = append(libraries, library)
		}
	}
	return libraries
}

// dynamic gives the entries of a dynamic table.
func dynamic(f *elf.File, table []byte) iter.Seq2[elf.DynTag, uint64] {
	return func(yield func(elf.DynTag, uint64) bool) {
		word := func(b []byte) uint64 { return f.ByteOrder.Uint64(b) }
		size := 8
		if f.Class == elf.ELFCLASS32 {
			word = func(b []byte) uint64 { return uint64(f.ByteOrder.Uint32(b)) }
			size = 4
		}
		for ; len(table) >= 2*size; table = table[2*size:] {
			tag := elf.DynTag(word(table))
			if tag == elf.DT_NULL || !yield(tag, word(table[size:])) {
				return
			}
		}
	}
}

// textAt reads the text that a module has at an address when it is loaded; "" if there is none.
func textAt(f *elf.File, address uint64) string {
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || address < p.Vaddr || address-p.Vaddr >= p.Filesz {
			continue
		}
		text := make([]byte, maxLibraryName)
		n, _ := p.ReadAt(text, int64(address-p.Vaddr))
		if end := bytes.IndexByte(text[:n], 0); end >= 0 {
			return string(text[:end])
		}
	}
	return ""
}

// withoutSections hides the sections of an ELF file from [elf.NewFile], which reads the one with their names whole: it may
// be compressed, and a megabyte may be many gigabytes.
type withoutSections struct {
	io.ReaderAt
}

// ReadAt implements [io.ReaderAt].
func (w *withoutSections) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.ReaderAt.ReadAt(p, off)
	var ident [elf.EI_NIDENT]byte
	if _, failed := w.ReaderAt.ReadAt(ident[:], 0); failed != nil {
		return n, failed
	}
	fields := [][2]int64{{0x28, 0x30}, {0x3c, 0x40}} // e_shoff; e_shnum and e_shstrndx
	if elf.Class(ident[elf.EI_CLASS]) == elf.ELFCLASS32 {
		fields = [][2]int64{{0x20, 0x24}, {0x30, 0x34}}
	}
	for _, field := range fields {
		for i := max(field[0], off); i < min(field[1], off+int64(n)); i++ {
			p[i-off] = 0
		}
	}
	return n, err
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
