package overlay

import (
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestDatabase: what SQLite keeps beside a database lands with it, or not at all.
func TestDatabase(t *testing.T) {
	// As large as a page, as a database is.
	const setup = "page() { printf '%512s' $1; }; page 1 > a.db; page 1 > b.db; echo 1 > plain; "
	const page = "page() { printf '%512s' $1; }; "
	kept := func(path string) Conflict { return Conflict{Path: path} }
	beside := Conflict{Path: "a.db", KeptAs: "a.db.conflict-r1"}
	withheld := func(path string) Withheld { return Withheld{path, "its database is withheld"} }
	for _, tt := range []struct {
		name, setup, run, meanwhile string
		protect                     []string
		want                        Report
		check                       string
	}{
		{name: "nobody else", run: "page 2 > a.db; echo 2 > a.db-wal; echo 2 > b.db-journal", want: Report{Added: []string{"a.db-wal", "b.db-journal"}, Modified: []string{"a.db"}}},
		{
			name: "both wrote the database", run: "page 2 > a.db; echo 2 > a.db-wal; echo 2 > b.db-wal", meanwhile: "page 3 > a.db",
			want: Report{Added: []string{"b.db-wal"}, Conflicts: []Conflict{beside, kept("a.db-wal")}}, check: "! test -e a.db-wal; test $(cat a.db) = 3; test $(cat a.db.conflict-r1) = 2",
		},
		{name: "the host's log", run: "page 2 > a.db", meanwhile: "echo 3 > a.db-wal", want: Report{Conflicts: []Conflict{beside}}, check: "test $(cat a.db) = 1; test $(cat a.db-wal) = 3"},
		{name: "the run's log", run: "echo 2 > a.db-wal", meanwhile: "page 3 > a.db", want: Report{Conflicts: []Conflict{kept("a.db-wal")}}, check: "! test -e a.db-wal"},
		{name: "both logs", setup: "echo 1 > a.db-wal", run: "echo 2 > a.db-wal", meanwhile: "echo 3 > a.db-wal", want: Report{Conflicts: []Conflict{kept("a.db-wal")}}, check: "test $(cat a.db-wal) = 3; ! ls *conflict*"},
		{
			name: "a checkpoint in the run", setup: "echo 1 > a.db-wal; echo 1 > a.db-shm", run: "page 2 > a.db; rm a.db-wal a.db-shm", meanwhile: "echo 3 > a.db-wal",
			want: Report{Conflicts: []Conflict{beside, kept("a.db-shm"), kept("a.db-wal")}}, check: "test $(cat a.db) = 1; test $(cat a.db-wal) = 3; test -e a.db-shm",
		},
		{name: "a checkpoint", setup: "echo 1 > a.db-wal; echo 1 > a.db-shm", run: "page 2 > a.db; rm a.db-wal a.db-shm", want: Report{Modified: []string{"a.db"}, Deleted: []string{"a.db-shm", "a.db-wal"}}},
		{name: "withheld", protect: []string{"a.db"}, run: "page 2 > a.db; echo 2 > a.db-wal", want: Report{Withheld: []Withheld{{"a.db", whyProtected}, withheld("a.db-wal")}}, check: "! test -e a.db-wal"},
		{name: "withheld in a new directory", protect: []string{"a.db"}, run: "mkdir d; page 2 > d/a.db; echo 2 > d/a.db-wal; echo 2 > d/x", want: Report{Added: []string{"d/x"}, Withheld: []Withheld{{"d/a.db", whyProtected}, withheld("d/a.db-wal")}}, check: "! test -e d/a.db-wal"},
		{name: "no database", run: "echo 2 > some-journal; echo 2 > other-wal", meanwhile: "echo 3 > other-wal", want: Report{Added: []string{"some-journal"}, Conflicts: []Conflict{{Path: "other-wal", KeptAs: "other-wal.conflict-r1"}}}},
		{name: "a file beside", run: "page 2 > a.db", meanwhile: "echo 3 > a.db-backup", want: Report{Modified: []string{"a.db"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := onDisk(t, setup+tt.setup, func(c *Config) { c.Protect = tt.protect })
			got := f.landed(page+tt.run, page+tt.meanwhile)
			tt.want.Landed = true
			tt.want.sort()
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			f.host(tt.check)
		})
	}
	t.Run("a conflict discards the rest if so configured", func(t *testing.T) {
		f := onDisk(t, setup, func(c *Config) { c.OnConflict = "discard" })
		if got := f.landed(page+"echo 2 > a.db-wal; echo 2 > plain", page+"page 3 > a.db"); got.Landed || got.Reason != "conflict: a.db-wal changed meanwhile" {
			t.Errorf("%+v", got)
		}
	})
}

// TestSQLite: SQLite itself, in the mode that keeps a log, on both sides.
func TestSQLite(t *testing.T) {
	if exec.Command("python3", "-IS", "-c", "import sqlite3").Run() != nil {
		t.Skip("no python3 with sqlite3 here")
	}
	// It leaves the log as a program does that is killed.
	insert := func(value string) string {
		return `python3 -IS -c "
import os, sqlite3
c = sqlite3.connect('a.db', isolation_level=None)
c.execute('pragma synchronous=off'); c.execute('pragma journal_mode=wal'); c.execute('create table if not exists t(x)')
c.execute('insert into t values (?)', ('` + value + `',)); os._exit(0)"; `
	}
	const read = `python3 -IS -c "
import sqlite3
c = sqlite3.connect('a.db'); print(c.execute('pragma integrity_check').fetchall()[0][0], *[r[0] for r in c.execute('select x from t')])"`
	f := onDisk(t, insert("one"))
	f.landed(insert("run"), "")
	if got := f.host(read); got != "ok one run\n" {
		t.Errorf("alone: %s", got)
	}
	report := f.landed(insert("again"), insert("host"))
	if got := f.host(read); got != "ok one run host\n" || len(report.Conflicts) == 0 {
		t.Errorf("both: %s%+v", got, report)
	}
}
