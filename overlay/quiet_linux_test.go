package overlay

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

var backToBack = flag.Int("back-to-back", 10, "how many runs on real mounts follow each other")

// TestNoFalseConflict: who only reads, or writes to other files, is in nobody's way.
func TestNoFalseConflict(t *testing.T) {
	f := onDisk(t, "mkdir d; for i in a b c d/x d/y; do echo 1 > $i; done; echo log > server.log; printf '#!/bin/sh\\nsleep 30\\n' > job; chmod 755 job")
	open := func(name string, flags int) *os.File {
		t.Helper()
		file, err := os.OpenFile(filepath.Join(f.dir, name), flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	log := open("server.log", os.O_WRONLY|os.O_APPEND)
	open("a", os.O_RDONLY) // as an editor that keeps it open
	open("d", os.O_RDONLY)
	mapped := open("b", os.O_RDONLY)
	m, err := unix.Mmap(int(mapped.Fd()), 0, 2, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	for _, name := range []string{"", "d", "a", "d/x"} {
		if _, err := unix.InotifyAddWatch(watch, filepath.Join(f.dir, name), unix.IN_ALL_EVENTS); err != nil {
			t.Fatal(err)
		}
	}
	tail := exec.Command("tail", "-f", filepath.Join(f.dir, "c"))
	job := exec.Command(filepath.Join(f.dir, "job")) // the shell has its script open
	for _, cmd := range []*exec.Cmd{tail, job} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
	}
	for i := range 3 {
		report := f.landed(`for i in a b c d/x job; do echo run >> $i; done; rm d/y; echo run > d/y; mkdir -p new; echo run > new/x`, `
			cat a b c d/x d/y > ../copy; tar cf ../copy .; find . -type f -exec cksum {} + > ../copy; ls -lR > ../copy; sync a`)
		if len(report.Conflicts) > 0 || len(report.Notes) > 0 || len(report.Modified) < 6 {
			t.Errorf("run %d: %+v", i, report)
		}
		if _, err := fmt.Fprintln(log, "line", i); err != nil {
			t.Fatal(err)
		}
	}
	f.host("grep -qx 'line 2' server.log; ! ls | grep conflict")
}

// TestBackToBackRuns: runs on real mounts, each of which changes what the one before landed, are never
// in conflict.
func TestBackToBackRuns(t *testing.T) {
	for fs, base := range bases(t) {
		t.Run(fs, func(t *testing.T) {
			f := newFixture(t, base, "echo 0 > n; mkdir d0; echo 0 > d0/n", func(c *Config) { c.Undo = 1 << 20 })
			for i := range *backToBack {
				report := f.landed(fmt.Sprintf(`read n < n; echo $((n+1)) > n
					cp -r d%d d%d; rm -r d%d; read n < d%[2]d/n; echo $((n+1)) > d%[2]d/n`, i, i+1, i), "")
				if len(report.Conflicts) > 0 || len(report.Modified)+len(report.Added)+len(report.Deleted) != 3 {
					t.Fatalf("run %d: %+v", i, report)
				}
			}
			f.host(fmt.Sprintf("grep -qx %d n; grep -qx %[1]d d%[1]d/n; test $(ls | wc -l) = 2", *backToBack))
		})
	}
}

// TestBackToBackCommits: so are runs that commit.
func TestBackToBackCommits(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		missing(t, "git", err)
	}
	f := onDisk(t, "git init -q .; git config user.name x; git config user.email x@example.org; echo 0 > n; git add n; git commit -qm 0")
	runs := max(4, *backToBack/10)
	for i := range runs {
		report := f.landed(fmt.Sprintf("export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'; echo %d >> n; git add n; git commit -qm %[1]d", i+1), "")
		if len(report.Conflicts) > 0 || len(report.Withheld) > 0 {
			t.Fatalf("run %d: %+v", i, report)
		}
	}
	f.host(fmt.Sprintf(`test "$(git log --oneline | wc -l)" = %d; git fsck --strict; test -z "$(git status --porcelain)"`, runs+1))
}
