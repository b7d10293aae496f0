package envs

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// member is one of an archive that a test makes.
type member struct {
	name, content string
	extra         []byte
}

// renamed is the extra field by which an archive gives a member a second name.
func renamed(name string) []byte {
	field := append([]byte{1, 0, 0, 0, 0}, name...)
	head := binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, 0x7075), uint16(len(field)))
	return append(head, field...)
}

func writeWheel(t testing.TB, members []member) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "bad-1.0-py3-none-any.whl")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for _, m := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: m.name, Extra: m.extra})
		if err == nil {
			_, err = w.Write([]byte(m.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

// Where two readers of a wheel could see different things, what Python would see is what is judged; and an archive
// that is made to be expensive is refused before it is.
func TestInspectingWheels(t *testing.T) {
	const info = "bad-1.0.dist-info/"
	metadata := member{name: info + "METADATA", content: "Name: bad\nVersion: 1.0\n"}
	var many []member
	for i := range 420 {
		many = append(many, member{name: fmt.Sprintf("%060000d.py", i)})
	}
	for _, tt := range []struct {
		name    string
		members []member
		want    string // of the error; "" for none
	}{
		{"an honest one", []member{metadata, {name: info + "entry_points.txt", content: "[console_scripts]\nbad = bad:x\n[other]\npython3 = bad:x\n"}, {name: "bäd.py", extra: renamed("bäd.py")}}, ""},
		{"a second name that leads out", []member{metadata, {name: "bad.py", extra: renamed("../../../bin/python3")}}, `has the name "../../../bin/python3" as well`},
		{"a second name after another field", []member{metadata, {name: "bad.py", extra: append([]byte{0x55, 0x54, 1, 0, 7}, renamed("/etc/x")...)}}, `has the name "/etc/x" as well`},
		{"a command below what is no section", []member{metadata, {name: info + "entry_points.txt", content: "[console_scripts]\n[fake = bad:x\npython3 = bad:x\n"}}, "would make a command"},
		{"a command with a slash", []member{metadata, {name: info + "entry_points.txt", content: "[console_scripts]\n../bad = bad:x\n"}}, `would make a command "../bad"`},
		{"a graphical command", []member{metadata, {name: info + "entry_points.txt", content: "[gui_scripts]\npython3.11 = bad:x\n"}}, `would make a command "python3.11"`},
		{"a second word for its own name", []member{{name: info + "METADATA", content: "Name: other\nName: bad\nVersion: 1.0\n"}}, "it says that it is other 1.0"},
		{"a second word for its own version", []member{{name: info + "METADATA", content: "Name: bad\nVersion: 2.0\nVersion: 1.0\n"}}, "it says that it is bad 2.0"},
		{"another version", []member{{name: info + "METADATA", content: "Name: bad\nVersion: 1.0.1\n"}}, "it says that it is bad 1.0.1"},
		{"no metadata", []member{{name: "bad.py"}}, "it has no metadata"},
		{"two packages", []member{metadata, {name: "worse-1.0.dist-info/METADATA", content: "Name: worse\nVersion: 1.0\n"}}, "several .dist-info"},
		{"a second package by its data", []member{metadata, {name: "bad-1.0.data/purelib/worse-1.0.dist-info/METADATA"}}, `is of another package: "worse-1.0.dist-info"`},
		{"a second package in capitals", []member{metadata, {name: "WORSE-1.0.DIST-INFO/PKG-INFO"}}, `is of another package: "WORSE-1.0.DIST-INFO"`},
		{"a second package as eggs had it", []member{metadata, {name: "worse-1.0.egg-info"}}, `is of another package: "worse-1.0.egg-info"`},
		{"its own in another version", []member{metadata, {name: "bad-2.0.dist-info/RECORD"}}, `is of another package: "bad-2.0.dist-info"`},
		{"an egg's of its own", []member{metadata, {name: "Bad.egg-info/PKG-INFO"}}, ""},
		{"packages in packages", []member{metadata, {name: "bad/_vendor/worse-1.0.dist-info/METADATA"}}, ""},
		{"one member twice", []member{metadata, {name: "bad.py"}, {name: "bad.py"}}, "is in it twice"},
		{"one file by two places", []member{metadata, {name: "bad.py"}, {name: "bad-1.0.data/purelib/bad.py"}}, "is in it twice"},
		{"the interpreter by its data", []member{metadata, {name: "bad-1.0.data/data/bin/python3.11"}}, "a part of the environment itself"},
		{"the environment's own file", []member{metadata, {name: "bad-1.0.data/data/pyvenv.cfg"}}, "a part of the environment itself"},
		{"a scheme that is none", []member{metadata, {name: "bad-1.0.data/stdlib/os.py"}}, "belongs nowhere"},
		{"a backslash", []member{metadata, {name: `..\..\bad.py`}}, "leads out"},
		{"more names than anybody needs", append(many, metadata), "the names of its members take more than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Package{Name: "bad", Version: "1.0", Wheel: "bad-1.0-py3-none-any.whl"}
			held, err := inspectWheel(writeWheel(t, tt.members), p, "lib/python3.11/site-packages", 1<<30)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v, %v; want %q", held, err, tt.want)
			}
		})
	}
}

// What is too long to be read again is not written.
func TestLongDocument(t *testing.T) {
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := Environment{Name: "default", Language: LanguagePython, Packages: []Package{{
		Name: "bad", Version: "1.0", SHA256: strings.Repeat("a", 64), Wheel: "bad-1.0-py3-none-any.whl", Requires: []string{"x; extra == 'y'"},
	}}}
	file := s.environmentFile(LanguagePython, "default")
	if err := writeDocument(file, &e); err != nil {
		t.Fatal(err)
	}
	long := e
	long.Packages = slices.Clone(e.Packages)
	long.Packages[0].Requires = slices.Repeat(e.Packages[0].Requires, maxDocument/16)
	if err := writeDocument(file, &long); err == nil || !strings.Contains(err.Error(), "default.json is longer than") {
		t.Errorf("error %v", err)
	}
	if now, err := s.Environment("default"); err != nil || len(now.Packages) != 1 {
		t.Errorf("the environment is %v, %v", now, err)
	}
}

// A file that is kept under one name, since some index had it so, is no obstacle to the other name that it has elsewhere.
func TestKeepingUnderTwoNames(t *testing.T) {
	s, w := emptyStore(t)
	defer w.close()
	for _, name := range []string{"evil-1.0-py3-none-any.whl", "good-1.0-py3-none-any.whl", "good-1.0-py3-none-any.whl"} {
		file := filepath.Join(w.dir, name)
		if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		p := Package{Name: "good", Version: "1.0", SHA256: strings.Repeat("a", 64), Wheel: name}
		if err := s.keepWheel(file, p); err != nil {
			t.Fatal(err)
		}
		if !exists(s.wheelFile(p)) {
			t.Errorf("%s is not kept", name)
		}
	}
}

// What an index and an installer say of a package becomes lines of files and of questions.
func TestValidatingPackages(t *testing.T) {
	honest := Package{Name: "good", Version: "1.0", SHA256: strings.Repeat("a", 64), Wheel: "good-1.0-py3-none-any.whl", Size: 1}
	if err := honest.validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Package){
		"name":                            func(p *Package) { p.Name = "Good" },
		"name with options":               func(p *Package) { p.Name = "good --index-url=http://x" },
		"name of letters that look alike": func(p *Package) { p.Name = "g\u043eod" },
		"version on two lines":            func(p *Package) { p.Version = "1.0\n" },
		"version with space":              func(p *Package) { p.Version = "\u00a01.0" },
		"version with options":            func(p *Package) { p.Version = "1.0 --pre" },
		"no hash":                         func(p *Package) { p.SHA256 = "" },
		"hash in capitals":                func(p *Package) { p.SHA256 = strings.Repeat("A", 64) },
		"file with a directory":           func(p *Package) { p.Wheel = "../good-1.0-py3-none-any.whl" },
		"file on two lines":               func(p *Package) { p.Wheel = "good-1.0\n-py3-none-any.whl" },
		"sources":                         func(p *Package) { p.Wheel = "good-1.0.zip" },
		"size":                            func(p *Package) { p.Size = -1 << 40 },
	} {
		p := honest
		change(&p)
		if err := p.validate(); err == nil {
			t.Errorf("%s: %+v is taken", name, p)
		}
	}
}

// emptyStore is a store with nothing in it, and a place to work in.
func emptyStore(t *testing.T) (*Store, *work) {
	t.Helper()
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.newWork()
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}
