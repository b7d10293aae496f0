package envs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// archiveParts are the members of an archive, its directory, and the record at its end.
func archiveParts(t *testing.T, members []member) (files, directory, end []byte) {
	t.Helper()
	all, err := os.ReadFile(writeWheel(t, members))
	if err != nil {
		t.Fatal(err)
	}
	end = all[len(all)-endLen:]
	at := binary.LittleEndian.Uint32(end[16:])
	return all[:at], all[at : len(all)-endLen], end
}

// moved is a directory whose members are so many bytes later in the archive.
func moved(directory []byte, by int) []byte {
	directory, le := bytes.Clone(directory), binary.LittleEndian
	for at := 0; at < len(directory); {
		entry := directory[at:]
		le.PutUint32(entry[42:], uint32(int(le.Uint32(entry[42:]))+by))
		at += entryLen + int(le.Uint16(entry[28:])) + int(le.Uint16(entry[30:])) + int(le.Uint16(entry[32:]))
	}
	return directory
}

func endRecord(members, length, offset int, comment string) []byte {
	le := binary.LittleEndian
	end := append([]byte(endSignature), 0, 0, 0, 0)
	end = le.AppendUint16(le.AppendUint16(end, uint16(members)), uint16(members))
	end = le.AppendUint32(le.AppendUint32(end, uint32(length)), uint32(offset))
	return append(le.AppendUint16(end, uint16(len(comment))), comment...)
}

// end64Records are those of zip64: the end, and where that is.
func end64Records(at, members, length, offset int) []byte {
	le := binary.LittleEndian
	end := le.AppendUint64([]byte(end64Signature), end64Len-12)
	end = append(end, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	end = le.AppendUint64(le.AppendUint64(end, uint64(members)), uint64(members))
	end = le.AppendUint64(le.AppendUint64(end, uint64(length)), uint64(offset))
	locator := append([]byte(locatorSignature), 0, 0, 0, 0)
	return append(append(end, le.AppendUint64(locator, uint64(at))...), 1, 0, 0, 0)
}

// An archive that has one content for who judges it and another for Python, which installs it, is refused. What Python
// reads in each of these is looked at, where there is one.
func TestWheelsOfTwoMinds(t *testing.T) {
	metadata := member{name: "bad-1.0.dist-info/METADATA", content: "Name: bad\nVersion: 1.0\n"}
	shown := []member{metadata, {name: "shown.py", content: strings.Repeat("#", 4000)}}
	hidden := []member{metadata, {name: "hidden.py"}}
	files, directory, _ := archiveParts(t, shown)
	files2, directory2, _ := archiveParts(t, hidden)
	first := bytes.Join([][]byte{files, directory, files2}, nil) // the hidden directory comes after that
	later := len(files) + len(directory)
	after := moved(directory2, later)
	at64 := len(first) + len(after)
	honest64 := func(offset int) []byte {
		return bytes.Join([][]byte{files, directory, end64Records(len(files)+len(directory), 2, len(directory), len(files)), endRecord(2, len(directory), offset, "")}, nil)
	}
	archives := []struct {
		name    string
		archive []byte
		python  string // what Python takes it to hold beside the metadata
		want    string // of the error
	}{
		{"honest", bytes.Join([][]byte{files, directory, endRecord(2, len(directory), len(files), "")}, nil), "shown.py", ""},
		{"a comment", bytes.Join([][]byte{files, directory, endRecord(2, len(directory), len(files), "as some have")}, nil), "shown.py", ""},
		{"zip64", honest64(1<<32 - 1), "shown.py", ""},
		{"zip64 that is not needed", honest64(len(files)), "shown.py", ""},
		{"zip64 that says something else", honest64(len(files) - 1), "shown.py", errEnd.Error()},
		{
			"the directory that is named is not the last one",
			bytes.Join([][]byte{first, moved(directory2, later-(len(first)-len(files))), endRecord(2, len(directory2), len(files), "")}, nil), "hidden.py", errEnd.Error(),
		},
		{
			"another one by zip64",
			bytes.Join([][]byte{first, after, end64Records(at64, 2, len(after), len(first)), endRecord(2, len(directory), len(files), "")}, nil), "hidden.py", errEnd.Error(),
		},
		{
			"something after the end",
			bytes.Join([][]byte{files, directory, endRecord(2, len(directory), len(files), ""), []byte("more")}, nil), "shown.py", errEnd.Error(),
		},
		{
			"something before the beginning",
			bytes.Join([][]byte{[]byte("#!/bin/sh\n"), files, directory, endRecord(2, len(directory), len(files), "")}, nil), "shown.py", errEnd.Error(),
		},
		{"no archive", []byte("PK\x05\x06"), "", "no zip archive"},
	}
	dir := t.TempDir()
	fileOf := func(i int) string { return filepath.Join(dir, fmt.Sprintf("%d.whl", i)) }
	for i, tt := range archives {
		if err := os.WriteFile(fileOf(i), tt.archive, 0o644); err != nil {
			t.Fatal(err)
		}
		held, err := inspectWheel(fileOf(i), Package{Name: "bad", Version: "1.0", Wheel: "bad-1.0-py3-none-any.whl"}, "lib/python3.11/site-packages", 1<<30)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v; want %q", tt.name, held, err, tt.want)
		}
	}
	const list = "import sys, zipfile\nfor i in range(int(sys.argv[2])):\n    try: print(zipfile.ZipFile(f'{sys.argv[1]}/{i}.whl').namelist()[-1])\n    except Exception: print()"
	out, err := exec.Command("python3", "-I", "-c", list, dir, fmt.Sprint(len(archives))).Output()
	if err != nil {
		t.Skip("what Python reads was not looked at: ", err)
	}
	for i, got := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		// Newer ones refuse some of them, too; and what is refused here may be anything.
		if tt := archives[i]; got != tt.python && (got != "" || tt.want == "") {
			t.Errorf("%s: Python reads %q, want %q", tt.name, got, tt.python)
		}
	}
}
