package overlay

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// editor is someone who works in the workspace: every edit writes a token of its own, and says which
// tokens it took away thereby. It knows them exactly, because it looks at what it replaced and not at
// what it is about to replace.
type editor struct {
	dir     string
	dropped func(os.FileInfo) // is told of what it took away
}

func (e editor) path(name string) string { return filepath.Join(e.dir, name) }

// inPlace truncates and writes, as a shell does.
func (e editor) inPlace(name, token string) (gone string, err error) {
	f, err := os.OpenFile(e.path(name), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	defer f.Close()
	// Nobody replaces it while it is open for writing.
	was, err := io.ReadAll(f)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(token+"\n"), 0)
	}
	return string(was), err
}

// backdated writes in place and gives the file its mtime back, as touch -r does.
func (e editor) backdated(name, token string) (gone string, err error) {
	was, err := os.Lstat(e.path(name))
	if err != nil {
		return "", err
	}
	if gone, err = e.inPlace(name, token); err != nil {
		return gone, err
	}
	return gone, os.Chtimes(e.path(name), time.Time{}, was.ModTime())
}

// renamed writes another file and renames it into place, as editors do.
func (e editor) renamed(name, token string) (gone string, err error) {
	beside := e.path(name + "." + token + ".new")
	if err := os.WriteFile(beside, []byte(token+"\n"), 0o644); err != nil {
		return "", err
	}
	// An exchange, so as to see what it replaced.
	err = unix.Renameat2(unix.AT_FDCWD, beside, unix.AT_FDCWD, e.path(name), unix.RENAME_EXCHANGE)
	if err == unix.ENOENT {
		return "", unix.Renameat2(unix.AT_FDCWD, beside, unix.AT_FDCWD, e.path(name), unix.RENAME_NOREPLACE)
	}
	if err != nil {
		return "", err
	}
	return e.drop(beside)
}

// appended adds to the end.
func (e editor) appended(name, token string) (gone string, err error) {
	f, err := os.OpenFile(e.path(name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, err = f.WriteString(token + "\n")
	return "", err
}

// removed removes it.
func (e editor) removed(name, token string) (gone string, err error) {
	beside := e.path(name + "." + token + ".old")
	if err := os.Rename(e.path(name), beside); err != nil {
		return "", err
	}
	return e.drop(beside)
}

// drop removes what no longer has its name, once nobody writes to it.
func (e editor) drop(path string) (gone string, err error) {
	if e.dropped != nil {
		file, err := os.Lstat(path)
		if err != nil {
			return "", err
		}
		e.dropped(file)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return string(b), os.Remove(path)
}

// mapped stores through a shared mapping, behind what is there.
func (e editor) mapped(name, token string) (gone string, err error) {
	f, err := os.OpenFile(e.path(name), os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		err = f.Truncate(end + int64(len(token)) + 1)
	}
	if err != nil {
		return "", err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(end)+len(token)+1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return "", err
	}
	copy(m[end:], token+"\n")
	return "", unix.Munmap(m)
}

// linked gives the file another name and edits it through that one.
func (e editor) linked(name, token string) (gone string, err error) {
	other := name + "." + token + ".link"
	if err := os.Link(e.path(name), e.path(other)); err != nil {
		return "", err
	}
	return e.appended(other, token)
}

// chmodded does not write at all.
func (e editor) chmodded(name, token string) (gone string, err error) {
	return "", os.Chmod(e.path(name), 0o640)
}

// swapped exchanges the directory of the file for another that has such a file, too.
func (e editor) swapped(name, token string) (gone string, err error) {
	if _, err := e.appended("other/"+filepath.Base(name), token); err != nil {
		return "", err
	}
	return "", unix.Renameat2(unix.AT_FDCWD, e.path(filepath.Dir(name)), unix.AT_FDCWD, e.path("other"), unix.RENAME_EXCHANGE)
}

// exchanged does that without an edit.
func (e editor) exchanged(name, _ string) (gone string, err error) {
	return "", unix.Renameat2(unix.AT_FDCWD, e.path(filepath.Dir(name)), unix.AT_FDCWD, e.path("other"), unix.RENAME_EXCHANGE)
}

// tokens are all lines of all files in the workspace.
func tokens(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		all = append(all, strings.Fields(string(bytes.ReplaceAll(b, []byte{0}, nil)))...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEditAtEveryMoment: an edit that comes before any of the calls to the system that a landing
// makes, whichever edit and whichever call, is never lost, nor is what the run wrote. (At every third
// call, unless asked with -every-kill.)
func TestEditAtEveryMoment(t *testing.T) {
	edits := map[string]func(e editor, name, token string) (string, error){
		"in place": editor.inPlace, "backdated": editor.backdated, "renamed": editor.renamed, "appended": editor.appended,
		"removed": editor.removed, "mapped": editor.mapped, "linked": editor.linked, "chmodded": editor.chmodded, "swapped": editor.swapped,
		"exchanged": editor.exchanged,
	}
	runs := map[string]func(upper string) error{
		"changed": func(upper string) error {
			return os.WriteFile(filepath.Join(upper, "d/f"), []byte("base\nrun\n"), 0o644)
		},
		"removed": func(upper string) error { return unix.Mknod(filepath.Join(upper, "d/f"), unix.S_IFCHR, 0) },
	}
	for did, ran := range runs {
		for how, edit := range edits {
			t.Run(did+", "+how, func(t *testing.T) {
				f := onDisk(t, "")
				write := how != "chmodded" && how != "removed" && how != "exchanged"
				mayWait := slices.Contains([]string{"in place", "backdated", "appended", "mapped", "linked"}, how)
				calls, _ := f.editAt(0, ran, edit, write, mayWait)
				conflicts := 0
				step := 3
				if *everyKill {
					step = 1
				}
				tried := 0
				for n := 1 + rand.IntN(step); n <= calls; n += step {
					tried++
					made, conflict := f.editAt(n, ran, edit, write, mayWait)
					calls = max(calls, made)
					if conflict {
						conflicts++
					}
				}
				if calls < 6 {
					t.Errorf("only %d calls", calls)
				}
				if (conflicts == 0) != (did == "removed" && how == "removed") || conflicts == tried {
					t.Errorf("%d conflicts in %d moments", conflicts, tried)
				}
			})
		}
	}
}

// editAt lands with an edit before the n-th call. It returns how many calls there were. mayWait is set for an edit that
// opens the file for writing, and so has to wait while there is a lease.
func (f *fixture) editAt(n int, ran func(string) error, edit func(editor, string, string) (string, error), writes, mayWait bool) (calls int, conflict bool) {
	t := f.t
	t.Helper()
	names, err := filepath.Glob(filepath.Join(f.dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		removePath(t, name)
	}
	for dir, text := range map[string]string{"d": "base\n", "other": "another\n"} {
		path := filepath.Join(f.dir, dir, "f")
		makeDirs(t, filepath.Dir(path))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	txn := f.begin()
	upper := txn.Layer().Upper
	makeDirs(t, filepath.Join(upper, "d"))
	if err := os.Chmod(filepath.Join(upper, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(filepath.Join(upper, "d"), "user.overlay.origin", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if err := ran(upper); err != nil {
		t.Fatal(err)
	}
	type result struct {
		gone string
		err  error
	}
	done := make(chan result, 1)
	hook := func() {
		if calls++; calls != n {
			return
		}
		go func() {
			gone, err := edit(editor{f.dir, nil}, "d/f", "host")
			done <- result{gone, err}
		}()
		var waits <-chan time.Time
		if mayWait {
			waits = time.After(50 * time.Millisecond)
		}
		select {
		case r := <-done:
			done <- r
		case <-waits:
		}
	}
	f.root.hook, txn.landing.hook = hook, hook
	report := f.land(txn)
	f.root.hook = nil
	r := result{}
	if n > 0 && calls >= n {
		r = <-done
	}
	edited := r.err == nil && n > 0 && calls >= n
	if r.err != nil && !os.IsNotExist(r.err) {
		t.Errorf("moment %d: %v", n, r.err)
	}
	all := tokens(t, f.dir)
	want := []string{"another"}
	if edited && writes {
		want = append(want, "host")
	}
	if slices.Contains(report.Modified, "d/f") || !slices.Contains(report.Deleted, "d/f") {
		want = append(want, "base")
	}
	if len(report.Modified) > 0 || slices.ContainsFunc(report.Conflicts, func(c Conflict) bool { return c.KeptAs != "" }) {
		want = append(want, "run")
	}
	for _, token := range want {
		if slices.Contains(all, token) || slices.Contains(strings.Fields(r.gone), token) {
			continue
		}
		t.Errorf("moment %d of %d: %s is lost: %v; the host took away %q; %s", n, calls, token, all, r.gone, report.Summary())
	}
	return calls, len(report.Conflicts) > 0
}

// TestSwapAtEveryMoment: a directory that is swapped for another while a run lands in it, whenever, is seen as
// swapped by the next one to land, which began before: the landing's own footprints hide nothing.
func TestSwapAtEveryMoment(t *testing.T) {
	for _, where := range []string{"d", "other"} { // where the next one has changed a file
		t.Run(where, func(t *testing.T) { swapAtEveryMoment(t, where) })
	}
}

func swapAtEveryMoment(t *testing.T, where string) {
	f := onDisk(t, "mkdir d other; for d in d other; do echo $d > $d/f; echo $d > $d/g; done")
	prepare := func(run, in, name string) *Txn {
		txn, err := f.Begin(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(txn.Layer().Upper, in)
		makeDirs(t, dir)
		for _, err := range []error{
			os.Chmod(dir, 0o700), unix.Setxattr(dir, "user.overlay.origin", []byte("x"), 0),
			os.WriteFile(filepath.Join(dir, name), []byte(run+"\n"), 0o644),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return txn
	}
	for n := 0; ; n++ {
		first, second := prepare(fmt.Sprint("first", n), "d", "f"), prepare(fmt.Sprint("second", n), where, "g")
		calls := 0
		hook := func() {
			if calls++; calls == n {
				must(unix.Renameat2(unix.AT_FDCWD, filepath.Join(f.dir, "d"), unix.AT_FDCWD, filepath.Join(f.dir, "other"), unix.RENAME_EXCHANGE))
			}
		}
		f.root.hook, first.landing.hook = hook, hook
		f.land(first)
		f.root.hook = nil
		report := f.land(second)
		conflict := slices.ContainsFunc(report.Conflicts, func(c Conflict) bool { return c.Path == where+"/g" })
		if swapped := n > 0 && calls >= n; swapped != conflict {
			t.Errorf("call %d of %d: swapped %v, and then %s", n, calls, swapped, report.Summary())
		}
		if calls < n {
			if n < 12 {
				t.Errorf("only %d calls", calls)
			}
			return
		}
	}
}
