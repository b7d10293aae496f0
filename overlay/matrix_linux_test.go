package overlay

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var everyCell = flag.Bool("every-cell", false, "refuse each run of the matrix that must be refused, not some")

// This file is long because the model is in it: what each cell must come to is worked out from the three
// states alone, by rules that stand beside each other and share nothing with the code under test.

// cell is one combination of what was at a path, what a run made of it, and what the host did meanwhile.
type cell struct{ before, after, host, path string }

var (
	cellKinds = []string{"absent", "file", "dir", "link", "opaque", "FIFO", "socket"}
	cellHosts = []string{"idle", "edited", "deleted", "replaced", "same"}
)

func cells() (all []cell) {
	for _, before := range cellKinds {
		for _, after := range cellKinds {
			for _, host := range cellHosts {
				if before == "absent" && (after == "absent" || host == "deleted") {
					continue
				}
				all = append(all, cell{before, after, host, before + "-" + after + "-" + host})
			}
		}
	}
	return all
}

func (c cell) in(dir string) cell {
	c.path = dir + c.path
	return c
}

// deed is one thing that the host or the run does to a path.
type deed struct{ Do, Kind, Path, Who string }

// remake removes what is there and makes something else.
func remake(kind, path, who string) []deed {
	return []deed{{"remove", "", path, ""}, {"make", kind, path, who}}
}

// setup is what the host does before, as far as first says, or what an earlier run does then: an opaque
// directory is what such a run left.
func (c cell) setup(first bool) []deed {
	switch {
	case c.before == "opaque" && first:
		return remake("dir", c.path, "before")
	case c.before == "opaque":
		return remake("opaque", c.path, "before")
	case first:
		return remake(c.before, c.path, "before")
	}
	return nil
}

// edits reports whether the run changes what is there, and not for something else.
func (c cell) edits() bool {
	return c.after == "file" && c.before == "file" || c.after == "dir" && (c.before == "dir" || c.before == "opaque")
}

func (c cell) run() []deed {
	switch {
	case c.edits():
		return []deed{{"edit", c.before, c.path, "run"}}
	case c.after == c.before && c.isSpecial():
		return nil
	}
	return remake(c.after, c.path, "run")
}

func (c cell) isSpecial() bool { return c.after == "FIFO" || c.after == "socket" }

func (c cell) meanwhile() []deed {
	switch c.host {
	case "edited":
		if c.before == "absent" {
			return remake("file", c.path, "host")
		}
		return []deed{{"edit", c.before, c.path, "host"}}
	case "deleted":
		return remake("absent", c.path, "")
	case "replaced":
		return remake(c.replacement(), c.path, "host")
	case "same":
		if c.edits() {
			return []deed{{"edit", c.before, c.path, "both"}}
		}
		return remake(c.after, c.path, "both")
	}
	return nil
}

func (c cell) replacement() string {
	if c.before == "dir" || c.before == "opaque" {
		return "file"
	}
	return "other"
}

// do does it.
func (d deed) do() {
	switch d.Do {
	case "remove":
		must(os.RemoveAll(d.Path))
	case "make":
		makeKind(d.Kind, d.Path, d.Who)
	case "edit":
		switch d.Kind {
		case "file":
			fileBy(d.Path, d.Who)
		case "dir", "opaque":
			fileBy(d.Path+"/f", d.Who)
		case "link":
			must(os.Remove(d.Path))
			makeKind("link", d.Path, d.Who)
		default:
			must(os.Chmod(d.Path, 0o600))
		}
	}
}

// expected is what the model says of a cell.
type expected struct {
	at     pathState
	beside map[string]pathState // by conflict name
	report Report
}

// expect is the model. It knows the three states and the promises, and nothing of layers.
func (c cell) expect(run string) expected {
	isDir := func(kind string) bool { return kind == "dir" || kind == "opaque" || kind == "other" }
	x := expected{at: state(c.before, "before"), beside: map[string]pathState{}}
	hostKind := c.before
	switch c.host { // what the host has now
	case "edited":
		switch {
		case c.before == "absent":
			hostKind, x.at = "file", state("file", "host")
		case isDir(c.before):
			x.at["/f"] = "file host"
		case c.before == "file" || c.before == "link":
			x.at = state(c.before, "host")
		}
	case "deleted":
		hostKind, x.at = "absent", pathState{}
	case "replaced":
		hostKind = c.replacement()
		x.at = state(hostKind, "host")
	case "same":
		if c.edits() && isDir(c.before) {
			x.at["/f"] = "file both"
		} else {
			x.at = state(c.after, "both")
		}
	}
	if c.isSpecial() {
		if c.after != c.before {
			x.report.Withheld = []Withheld{{c.path, c.after}}
		}
		return x
	}
	if c.host == "same" {
		return x
	}
	conflict := func(rel string, ours pathState) {
		one := Conflict{Path: c.path + rel, Gone: rel == "" && hostKind == "absent"}
		if ours != nil {
			one.KeptAs = one.Path + ".conflict-" + run
			x.beside[one.KeptAs] = ours
			if rel != "" {
				x.at[rel+".conflict-"+run] = ours[""]
			}
		}
		x.report.Conflicts = append(x.report.Conflicts, one)
	}
	// leaves lists the files and links of a state.
	leaves := func(t pathState, except string) (paths []string) {
		for rel, what := range t {
			if what != "dir" && rel != except {
				paths = append(paths, c.path+rel)
			}
		}
		return paths
	}
	idle := c.host == "idle"
	switch {
	case c.after == "absent" && hostKind == "absent":
	case c.after == "absent" && idle:
		x.report.Deleted = leaves(x.at, "-")
		x.at = pathState{}
	case c.after == "absent" && c.host == "edited" && isDir(c.before):
		// What the host edited stays, and what it lies in.
		conflict("/f", nil)
		x.report.Deleted = leaves(x.at, "/f")
		x.at = pathState{"": "dir", "/f": "file host"}
	case c.after == "absent":
		conflict("", nil)

	case c.edits() && c.before == "file" && idle:
		x.report.Modified = []string{c.path}
		x.at = state("file", "run")
	case c.edits() && c.before == "file": // edited, deleted or replaced
		conflict("", state("file", "run"))
	case c.edits() && idle:
		x.report.Modified = []string{c.path + "/f"}
		x.at["/f"] = "file run"
	case c.edits() && c.host == "edited":
		conflict("/f", pathState{"": "file run"})
	case c.edits(): // deleted or replaced
		conflict("", pathState{"": "dir", "/f": "file run"})

	// From here on the run made something new.
	case hostKind == "absent":
		x.at = state(c.after, "run")
		x.report.Added = leaves(x.at, "-")
	case c.after == "opaque" && isDir(c.before) && (idle || c.host == "edited"):
		x.report.Deleted = leaves(x.at, "/f")
		x.at = pathState{"": "dir", "/f": "file host"}
		if idle {
			x.at["/f"] = "file run"
			x.report.Modified = []string{c.path + "/f"}
		} else {
			conflict("/f", pathState{"": "file run"})
		}
	case idle && isDir(c.before) == isDir(c.after): // a file or link for another
		x.report.Modified = []string{c.path}
		x.at = state(c.after, "run")
	case idle:
		x.report.Deleted = leaves(x.at, "-")
		x.at = state(c.after, "run")
		x.report.Added = leaves(x.at, "-")
	case isDir(c.after) && isDir(hostKind): // both made a directory: each entry for itself
		if c.before != "absent" {
			conflict("", nil) // the run made its own the only thing there, and the host's /h is there, too
		}
		conflict("/f", pathState{"": "file run"})
		for rel, what := range state(c.after, "run") {
			if rel != "/f" {
				x.at[rel] = what
			}
		}
		if c.after == "dir" {
			x.report.Added = []string{c.path + "/sub/g"}
		}
	default:
		conflict("", state(c.after, "run"))
	}
	return x
}

// matrix is a workspace with cells in it, after the run and what the host did meanwhile.
func matrix(t *testing.T, base string, cells []cell, change func(*Config)) (*fixture, *Txn) {
	t.Helper()
	f := newFixture(t, base, "umask 022; mkdir sub", change)
	deeds := func(each func(cell) []deed) string {
		var all []deed
		for _, c := range cells {
			all = append(all, each(c)...)
		}
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		f.runs++
		path := filepath.Join(f.base, fmt.Sprint("deeds", f.runs))
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return "umask 022; tool deeds " + path
	}
	f.host(deeds(func(c cell) []deed { return c.setup(true) }))
	f.landed(deeds(func(c cell) []deed { return c.setup(false) }), "")
	script := deeds(cell.run)
	txn := f.begin()
	run(t, txn.Layer(), script)
	f.host(deeds(cell.meanwhile))
	return f, txn
}

// check compares what is at a cell's path, and beside it, with what shall be.
func (f *fixture) check(c cell, want expected) {
	f.t.Helper()
	if diff := cmp.Diff(want.at, lookAt(f.t, filepath.Join(f.dir, c.path)), cmpopts.EquateEmpty()); diff != "" {
		f.t.Errorf("%s (-want +got):\n%s", c.path, diff)
	}
	for path, ours := range want.beside {
		if diff := cmp.Diff(ours, lookAt(f.t, filepath.Join(f.dir, path))); diff != "" {
			f.t.Errorf("beside %s (-want +got):\n%s", path, diff)
		}
	}
}

// TestMatrix goes through every combination, all of them as paths of one workspace and one run, and
// compares with the model. It does so on each filesystem, with the paths at the top or in a directory.
func TestMatrix(t *testing.T) {
	for fs, base := range bases(t) {
		for _, sub := range map[string][]string{"disk": {"sub/"}, "tmpfs": {""}}[fs] {
			t.Run(fs+"/"+sub, func(t *testing.T) {
				var all []cell
				for _, c := range cells() {
					all = append(all, c.in(sub))
				}
				f, txn := matrix(t, base, all, func(*Config) {})
				got := f.land(txn)
				want := Report{Landed: true}
				for _, c := range all {
					x := c.expect(txn.run)
					f.check(c, x)
					want.Added = append(want.Added, x.report.Added...)
					want.Modified = append(want.Modified, x.report.Modified...)
					want.Deleted = append(want.Deleted, x.report.Deleted...)
					want.Conflicts = append(want.Conflicts, x.report.Conflicts...)
					want.Withheld = append(want.Withheld, x.report.Withheld...)
				}
				want.sort()
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("report (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestMatrixDiscarding: where a conflict discards the run, what is in none lands all the same, and what is in
// one leaves everything as the host has it.
func TestMatrixDiscarding(t *testing.T) {
	discard := func(c *Config) { c.OnConflict = "discard" }
	var peaceful []cell
	tried := 0
	for i, c := range cells() {
		c = c.in("sub/")
		want := c.expect("")
		if len(want.report.Conflicts) == 0 {
			peaceful = append(peaceful, c)
			continue
		}
		if i%23 != 0 && !*everyCell {
			continue
		}
		tried++
		idle := cell{"file", "file", "idle", "idle"}
		f, txn := matrix(t, t.TempDir(), []cell{c, idle}, discard)
		got := f.land(txn)
		if got.Landed || got.Discarded == 0 || len(got.Conflicts) == 0 || len(got.Added)+len(got.Modified)+len(got.Deleted) > 0 {
			t.Errorf("%s: %+v", c.path, got)
		}
		hosts := cell{c.before, "FIFO", c.host, c.path}
		if c.host == "same" {
			t.Errorf("%s: no conflict could be", c.path)
		}
		f.check(c, expected{at: hosts.expect("").at}) // a run's FIFO never lands: this is what the host has
		f.check(idle, expected{at: state("file", "before")})
	}
	if tried == 0 {
		t.Error("no cell was tried")
	}
	f, txn := matrix(t, t.TempDir(), peaceful, discard)
	if got := f.land(txn); !got.Landed || len(got.Conflicts) > 0 {
		t.Errorf("%d cells without a conflict: %s", len(peaceful), got.Summary())
	}
	for _, c := range peaceful {
		f.check(c, c.expect(txn.run))
	}
}
