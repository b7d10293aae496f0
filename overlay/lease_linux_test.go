package overlay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestOpenWriter: what a process has open for writing is not replaced or removed, and what it writes
// later is at the path.
func TestOpenWriter(t *testing.T) {
	openFor := func(flags int) func(t *testing.T, path string) (write, done func()) {
		return func(t *testing.T, path string) (write, done func()) {
			f, err := os.OpenFile(path, flags, 0)
			if err != nil {
				t.Fatal(err)
			}
			return func() {
				if _, err := f.WriteString("late\n"); err != nil {
					t.Error(err)
				}
			}, func() { f.Close() }
		}
	}
	mapped := func(t *testing.T, path string) (write, done func()) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		m, err := unix.Mmap(int(f.Fd()), 0, 5, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		return func() { copy(m, "late\n") }, func() { unix.Munmap(m) }
	}
	const why = "log is open for writing elsewhere."
	for _, tt := range []struct {
		name, run string
		writer    func(t *testing.T, path string) (write, done func())
		want      Report
		holds     string
	}{
		{
			"append", "echo run >> log; echo run > other", openFor(os.O_WRONLY | os.O_APPEND),
			Report{Landed: true, Modified: []string{"other"}, Conflicts: []Conflict{{Path: "log", KeptAs: "log.conflict-r1"}}, Notes: []string{why}},
			"tail -n 1 log | grep -qx late; grep -qx run log.conflict-r1; grep -qx run other",
		},
		{
			"mapped, and closed", "echo run > log", mapped,
			Report{Landed: true, Conflicts: []Conflict{{Path: "log", KeptAs: "log.conflict-r1"}}, Notes: []string{why}},
			"head -n 1 log | grep -qx late; grep -qx run log.conflict-r1",
		},
		{
			"removed", "rm log; rm -r d", openFor(os.O_RDWR),
			Report{Landed: true, Deleted: []string{"d/x"}, Conflicts: []Conflict{{Path: "log"}}, Notes: []string{why}},
			"grep -qx late log; ! test -e d",
		},
		{
			"a directory in its place", "rm log; mkdir log; echo run > log/x", openFor(os.O_RDWR),
			Report{Landed: true, Conflicts: []Conflict{{Path: "log", KeptAs: "log.conflict-r1"}}, Notes: []string{why}},
			"grep -qx late log; grep -qx run log.conflict-r1/x",
		},
		{
			"not changed by the run", "echo run > other; cat log", openFor(os.O_WRONLY | os.O_APPEND),
			Report{Landed: true, Modified: []string{"other"}},
			"tail -n 1 log | grep -qx late; grep -qx run other",
		},
		{
			"only read", "echo run >> log", func(t *testing.T, path string) (write, done func()) {
				f, err := os.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				return func() {}, func() { f.Close() }
			},
			Report{Landed: true, Modified: []string{"log"}},
			"tail -n 1 log | grep -qx run",
		},
	} {
		for fs, base := range bases(t) {
			t.Run(tt.name+" on "+fs, func(t *testing.T) {
				f := newFixture(t, base, "echo 1234 > log; echo 5678 >> log; echo 1 > other; mkdir d; echo 1 > d/x")
				write, done := tt.writer(t, filepath.Join(f.dir, "log"))
				defer done()
				report := f.landed(tt.run, "")
				write()
				if diff := cmp.Diff(tt.want, report); diff != "" {
					t.Errorf("report (-want +got):\n%s", diff)
				}
				f.host(tt.holds)
			})
		}
	}
}

// TestOpenWriterUndo: an undo does not take away what someone writes to, either.
func TestOpenWriterUndo(t *testing.T) {
	f := onDisk(t, "echo 1 > a; echo 1 > b")
	f.landed("echo 2 > a; echo 2 > b; echo 2 > new", "")
	for _, name := range []string{"a", "new"} {
		w, err := os.OpenFile(filepath.Join(f.dir, name), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		defer func() {
			if _, err := w.WriteString("late\n"); err != nil {
				t.Error(err)
			}
			f.host("test \"$(tail -n 1 " + name + ")\" = late")
		}()
	}
	report := f.undo("")
	var paths []string
	for _, c := range report.Conflicts {
		paths = append(paths, c.Path)
	}
	if got := strings.Join(paths, " "); got != "a new" || len(report.Notes) != 2 {
		t.Errorf("%+v", report)
	}
	f.host("grep -qx 1 b; grep -qx 1 a.conflict-*; grep -qx 2 a; grep -qx 2 new")
}

// TestDiscardOpenWriter: where no conflict is allowed, a writer is one.
func TestDiscardOpenWriter(t *testing.T) {
	f := onDisk(t, "echo 1 > a; echo 1 > log", func(c *Config) { c.OnConflict = "discard" })
	w, err := os.OpenFile(filepath.Join(f.dir, "log"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	report := f.landed("echo 2 > a; echo 2 > log; echo 2 > new", "")
	if report.Landed || !cmp.Equal(report.Conflicts, []Conflict{{Path: "log"}}) {
		t.Errorf("%+v", report)
	}
	f.host("grep -qx 1 a; grep -qx 1 log; ! test -e new")
}
