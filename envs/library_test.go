//go:build unix

package envs

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"
)

// aModule gives the bytes of an ELF program of this host, and a library that it needs.
func aModule(t *testing.T) (body []byte, library string) {
	t.Helper()
	f, err := elf.Open("/bin/sh")
	if err != nil {
		t.Skip("this host's programs are no ELF files: ", err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) == 0 {
		t.Skip("/bin/sh needs no library: ", err)
	}
	if body, err = os.ReadFile("/bin/sh"); err != nil {
		t.Fatal(err)
	}
	return body, libraries[0]
}

// A module whose shared library the host lacks is named, with that; what the host has, what the package brings
// itself and what is no module is not.
func TestMissingLibraries(t *testing.T) {
	body, library := aModule(t)
	lost := library[:len(library)-1] + "~"
	broken := bytes.ReplaceAll(body, []byte(library+"\x00"), []byte(lost+"\x00"))
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"fine.so": body, "cv2/cv2.abi3.so": broken, "text.so": []byte("no module"), "cut.so": broken[:64], "cut2.so": broken[:2000], "empty.so": nil,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := missingLibraries(dir, nil), []string{"cv2.abi3.so needs " + lost}; !slices.Equal(got, want) {
		t.Errorf("missing are %q, want %q", got, want)
	}
	more := t.TempDir()
	if err := os.WriteFile(filepath.Join(more, lost), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := missingLibraries(dir, []string{more}); len(got) > 0 {
		t.Errorf("with the library in a directory of the interpreter's: %q", got)
	}
}

// A module whose table of sections is compressed takes no memory for that.
func TestModuleThatIsABomb(t *testing.T) {
	body, library := aModule(t)
	if elf.Class(body[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(body[elf.EI_DATA]) != elf.ELFDATA2LSB {
		t.Skip("this host's programs are of another class")
	}
	const unpacked = 64 << 20
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	if _, err := io.Copy(z, io.LimitReader(zeros{}, unpacked)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write := func(v any) {
		if err := binary.Write(&packed, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	names := append(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(elf.COMPRESS_ZLIB)), unpacked), 1, 0, 0, 0, 0, 0, 0, 0)
	names = append(names, packed.Bytes()...)
	packed.Reset()
	write(elf.Section64{})
	write(elf.Section64{Type: uint32(elf.SHT_STRTAB), Flags: uint64(elf.SHF_COMPRESSED), Off: uint64(len(body)), Size: uint64(len(names))})
	bomb := append(append(slices.Clone(body), names...), packed.Bytes()...)
	binary.LittleEndian.PutUint64(bomb[0x28:], uint64(len(body)+len(names))) // e_shoff
	binary.LittleEndian.PutUint16(bomb[0x3c:], 2)                            // e_shnum
	binary.LittleEndian.PutUint16(bomb[0x3e:], 1)                            // e_shstrndx
	file := filepath.Join(t.TempDir(), "bomb.so")
	if err := os.WriteFile(file, bomb, 0o644); err != nil {
		t.Fatal(err)
	}
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	libraries := imported(file)
	goruntime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("reading %d bytes took %d bytes of memory", len(bomb), took)
	}
	if !slices.Contains(libraries, library) {
		t.Errorf("the libraries are %q", libraries)
	}
}

// zeros is endless.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
