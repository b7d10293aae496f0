package overlay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
)

// TestFidelity: what lands is what a run on the plain directory would have left. Each landing is taken back
// afterwards, which must leave what was.
func TestFidelity(t *testing.T) {
	me := os.Geteuid()
	for _, tt := range []struct {
		name                  string
		setup, run, meanwhile string
		want                  Report
		check, undone         string // host scripts that must succeed
	}{
		{
			name:  "names of one file",
			setup: "mkdir old; echo 1 > f; chmod 640 f; echo 1 > g; echo 1 > kept",
			run: `echo a > a; ln a old/b; mkdir -p new/deep; ln a new/deep/c; ln a .envrc; mkdir __pycache__; ln a __pycache__/p; ln a gone; rm gone
				ln f f2; ln g g2; rm g; ln kept .profile; chmod 0 a`,
			want: Report{
				Added: []string{"a", "old/b", "new/deep/c", "f2", "g2"}, Deleted: []string{"g"},
				Withheld: []Withheld{{".envrc", "protected"}, {".profile", "protected"}},
			},
			check: `test a -ef old/b; test a -ef new/deep/c; test $(stat -c %h,%a a) = 3,0; test f -ef f2; test $(stat -c %h,%a f) = 2,640
				test $(stat -c %h g2) = 1; test $(stat -c %h kept) = 1`,
			undone: `test "$(ls)" = "f
g
kept
old"; test $(stat -c %h f) = 1`,
		},
		{
			name:      "one name of a file with several in the workspace",
			setup:     "for p in a,b c,d e,g h,i k,l; do echo 1 > ${p%,*}; ln ${p%,*} ${p#*,}; done",
			run:       "echo run > a; echo r1 > c; echo r2 > d; rm e; echo run > h; ln k m",
			meanwhile: "echo host > i",
			want: Report{
				Added: []string{"m"}, Modified: []string{"a", "c", "d"}, Deleted: []string{"e"}, Conflicts: []Conflict{{Path: "h", KeptAs: "h.conflict-r1"}},
			},
			check:  "grep -qx run a; grep -qx 1 b; grep -qx r1 c; grep -qx r2 d; grep -qx 1 g; grep -qx host h; grep -qx run h.conflict-r1; test k -ef l; grep -qx 1 m",
			undone: "test a -ef b; test c -ef d; test e -ef g; grep -qx host h",
		},
		{
			name:   "files that are mostly hole",
			setup:  "truncate -s 900M big; echo x >> big; truncate -s 100G same",
			run:    ": >> same; truncate -s 100G new; echo end >> new; echo y >> big",
			want:   Report{Added: []string{"new"}, Modified: []string{"big"}},
			check:  "test $(stat -c %b new) -lt 100; test $(stat -c %b big) -lt 100; test \"$(tail -c 4 new)\" = end",
			undone: "test \"$(tail -c 2 big)\" = x",
		},
		{
			name:  "special files in every place",
			setup: "echo 1 > f; mkdir d; echo 1 > d/x; ln -s x l; mkfifo was",
			run:   "rm f; tool socket f; rm -r d; mkfifo d; rm l; mkfifo l; mkdir -p n/m; tool socket n/m/s; echo 1 > n/x; rm was; echo file > was",
			want: Report{
				Added: []string{"n/x"}, Modified: []string{"was"},
				Withheld: []Withheld{{"d", "FIFO"}, {"f", "socket"}, {"l", "FIFO"}, {"n/m/s", "socket"}},
			},
			check:  "grep -qx 1 f; grep -qx 1 d/x; test -L l; test \"$(ls n)\" = x; grep -qx file was",
			undone: "test -p was",
		},
		{
			name: "attributes of the user class",
			setup: `for i in set changed removed renamed; do echo 1 > $i; done; mkdir d
				tool set changed user.a 1 , set removed user.a 1 , set renamed user.a 1 , set d user.dir 1`,
			run: `echo new > x; mv x renamed; mkdir n; echo 1 > n/f; echo 1 > forged; echo 1 > d/x
				tool set set user.a 2 , set changed user.a 2 , unset removed user.a , setmany set user.n 20 , set changed user.large @2000 , \
					set n user.dir 2 , set n/f user.f 3 , set forged user.overlay.opaque y , has d user.dir 1`,
			want: Report{Added: []string{"d/x", "forged", "n/f"}, Modified: []string{"changed", "removed", "renamed", "set"}},
			check: `tool has set user.a 2 , has set user.n20 20 , has changed user.a 2 , has changed user.large @2000 , has removed user.a , \
				has renamed user.a , has n user.dir 2 , has n/f user.f 3 , has forged user.overlay.opaque , has forged user.overlay.overlay.opaque , has d user.dir 1`,
			undone: "tool has changed user.a 1 , has removed user.a 1 , has renamed user.a 1 , has set user.a",
		},
		{
			name: "access control lists",
			setup: fmt.Sprintf(`for i in edited replaced dropped changed own given stranger; do echo 1 > $i; done; mkdir d
				tool acl edited access %d 6 , acl replaced access %[1]d 6 , acl dropped access %[1]d 6 , acl changed access %[1]d 6 , acl own access %[1]d 6 , \
					acl stranger access 12345 6 , acl d default %[1]d 6 , acl . default %[1]d 4`, me),
			// The user of a run of these tests is 0 in its namespace.
			run: `echo 2 > edited; echo 2 > stranger; echo 2 > d/x; mv d/x d/inherits; rm replaced; umask 027; echo 2 > y; echo 2 > top; echo 2 > z
				tool unset y system.posix_acl_access , unset dropped system.posix_acl_access , acl changed access 0 4 , acl given access 0 6 , acl z access 0 0
				mv y replaced; mv z own`,
			want: Report{Added: []string{"d/inherits", "top"}, Modified: []string{"changed", "dropped", "edited", "given", "own", "replaced", "stranger"}},
			check: fmt.Sprintf(`tool hasacl stranger access 12345 6 , hasacl edited access %d 6 , hasacl d/inherits access %[1]d 6 , hasacl top access %[1]d 4 , has dropped system.posix_acl_access , \
				hasacl changed access %[1]d 4 , hasacl given access %[1]d 6 , hasacl own access %[1]d 0 , hasacl replaced access %[1]d 6`, me),
			undone: fmt.Sprintf("tool hasacl dropped access %d 6 , hasacl replaced access %[1]d 6 , hasacl own access %[1]d 6", me),
		},
		{
			name:   "a directory that gives its group",
			setup:  "mkdir d; chmod 2775 d",
			run:    "echo 1 > d/f; mkdir d/sub; echo 1 > d/sub/g",
			want:   Report{Added: []string{"d/f", "d/sub/g"}},
			check:  `test $(stat -c %a d/sub) = $(mkdir d/bare; stat -c %a d/bare); test $(stat -c %g d/f) = $(stat -c %g d); rmdir d/bare`,
			undone: `test -z "$(ls d)"`,
		},
		{
			name: "links",
			run:  `ln -s loop loop; ln -s /abs/olute abs; ln -s "$(printf 'x%.0s' $(seq 4095))" long; ln -s "$(printf '\377')" byte; touch -h -d '2001-01-01 01:01:01.000000123' abs`,
			want: Report{Added: []string{"loop", "abs", "long", "byte"}},
			check: `test "$(readlink loop)" = loop; test "$(readlink abs)" = /abs/olute; test $(readlink -n long | wc -c) = 4095; test "$(readlink byte)" = "$(printf '\377')"
				stat -c %y abs | grep -q 01.000000123`,
		},
		{
			name:   "a time alone, a mode alone",
			setup:  "echo 1 > t; echo 1 > m; echo 1 > both; touch -d 2001-01-01 t",
			run:    "touch -d '2002-02-02 02:02:02.000000002' t; chmod 600 m; chmod 755 both; touch -d 2003-03-03 both; touch -c .",
			want:   Report{Modified: []string{"both", "m", "t"}},
			check:  "stat -c %y t | grep -q '^2002.*02.000000002'; test $(stat -c %a m both | tr '\\n' ,) = 600,755,; stat -c %y both | grep -q ^2003",
			undone: "stat -c %y t | grep -q ^2001; test $(stat -c %a m) = 644",
		},
		{
			name:  "a name and a path at their limits",
			setup: `mkdir deep; tool deep deep 20 ` + strings.Repeat("d", 200),
			run: `echo 1 > "$(printf 'n%.0s' $(seq 255))"; cd deep/` + strings.Repeat(strings.Repeat("d", 200)+"/", 19) + strings.Repeat("d", 200) + `
				echo 1 > ` + strings.Repeat("s", 69) + `; echo 1 > ` + strings.Repeat("t", 71) + `; mkdir ` + strings.Repeat("u", 69) + `; echo 1 > ` + strings.Repeat("u", 69) + "/x; echo 2 > bottom",
			want: Report{
				Added:    []string{strings.Repeat("n", 255), deepest(strings.Repeat("s", 69))},
				Modified: []string{deepest("bottom")},
				Withheld: []Withheld{{deepest(strings.Repeat("t", 71)), whyTooLong}, {deepest(strings.Repeat("u", 69) + "/x"), whyTooLong}},
			},
			check: "test -s " + strings.Repeat("n", 255),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := onDisk(t, "umask 022; "+tt.setup)
			got := f.landed("umask 022; "+tt.run, tt.meanwhile)
			tt.want.Landed = true
			tt.want.sort()
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			f.host(tt.check)
			undo, err := f.Undo(context.Background(), "")
			if err != nil || len(undo.Conflicts) > 0 {
				t.Errorf("undo: %+v, %v", undo, err)
			}
			f.host(tt.undone)
		})
	}
}

// deepest is a path of the tree that "tool deep deep 20" makes with names of 200 bytes: 4,025 bytes and name.
func deepest(name string) string {
	return "deep/" + strings.Repeat(strings.Repeat("d", 200)+"/", 20) + name
}

// TestOverlappingLinks: two runs at once that change two names of one file don't look to each other like
// someone who changed it; someone who does is seen.
func TestOverlappingLinks(t *testing.T) {
	f := onDisk(t, "echo 1 > a; ln a b; ln a c; ln a d")
	var txns []*Txn
	for range 3 {
		txns = append(txns, f.begin())
	}
	run(t, txns[0].Layer(), "echo 1st > a")
	run(t, txns[1].Layer(), "rm b")
	run(t, txns[2].Layer(), "echo 3rd > c")
	for i, txn := range txns {
		if i == 2 {
			f.host("echo host > d")
		}
		got := f.land(txn)
		if conflict := len(got.Conflicts) > 0; conflict != (i == 2) {
			t.Errorf("landing %d: %s", i, got.Summary())
		}
	}
	f.host("grep -qx 1st a; ! test -e b; grep -qx host c; grep -qx 3rd c.conflict-r3; grep -qx host d")
}

// TestWhiteoutAttributes: the other form of a whiteout, which this kernel writes into other layers only, and
// which is one in a directory of its mark only.
func TestWhiteoutAttributes(t *testing.T) {
	for _, prefix := range []string{"user.overlay.", "trusted.overlay."} {
		t.Run(prefix, func(t *testing.T) {
			if prefix == "trusted.overlay." && !rootRights() {
				t.Skip("attributes of this class are root's")
			}
			f := onDisk(t, "mkdir d e; echo 1 > d/gone; echo 1 > d/full; echo 1 > e/emptied")
			txn := f.begin()
			upper := txn.Layer().Upper
			for _, path := range []string{"d/gone", "d/full", "e/emptied"} {
				makeDirs(t, filepath.Join(upper, filepath.Dir(path)))
				writeFile(t, filepath.Join(upper, path))
				setXattr(t, filepath.Join(upper, path), prefix+"whiteout", "y")
			}
			if err := os.WriteFile(filepath.Join(upper, "d/full"), []byte("content"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{"d", "e"} {
				setXattr(t, filepath.Join(upper, dir), prefix+"origin", "x")
			}
			setXattr(t, filepath.Join(upper, "d"), prefix+"opaque", "x")
			got := f.land(txn)
			// The directories were made here, with another mode.
			want := Report{Landed: true, Modified: []string{"d", "d/full", "e", "e/emptied"}, Deleted: []string{"d/gone"}}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			for _, path := range []string{"d", "d/full", "e/emptied"} {
				if names := listXattr(t, filepath.Join(f.dir, path)); len(names) > 0 {
					t.Errorf("%s has %q", path, names)
				}
			}
		})
	}
}

// TestForgedMarks: what sends overlayfs to another file is refused, wherever it is.
func TestForgedMarks(t *testing.T) {
	for _, path := range []string{"f", "new/f", "d/f"} {
		for _, name := range []string{"user.overlay.metacopy", "user.overlay.redirect"} {
			t.Run(path+" "+name, func(t *testing.T) {
				f := onDisk(t, "mkdir d; echo 1 > d/f; echo 1 > f")
				before := snapshot(t, f.dir, true)
				txn := f.begin()
				run(t, txn.Layer(), "echo 2 > f; echo 2 > d/f; mkdir new; echo 2 > new/f")
				setXattr(t, filepath.Join(txn.Layer().Upper, path), name, "/etc/passwd")
				if report, err := txn.Land(context.Background()); err == nil || report.Landed || !strings.Contains(err.Error(), path) {
					t.Errorf("landed: %+v, %v", report, err)
				}
				if diff := cmp.Diff(before, snapshot(t, f.dir, true)); diff != "" {
					t.Errorf("(-before +after):\n%s", diff)
				}
			})
		}
	}
}

// TestUnmappedOwner: a file of someone whom the run's namespace does not know can't be written in place, as
// the run itself is told; what else it did lands, and the file can be replaced.
func TestUnmappedOwner(t *testing.T) {
	if !rootRights() {
		t.Skip("only root can give a file to someone else")
	}
	f := onDisk(t, "echo 1 > theirs; echo 1 > replaced; chown 12345:12345 theirs replaced; echo 1 > ours")
	got := f.landed(`if echo 2 > theirs; then exit 9; fi; echo 2 > new; mv -f new replaced; echo 2 > ours`, "")
	if got.Summary() != "workspace: 2 modified: ours, replaced" {
		t.Errorf("%s", got.Summary())
	}
	f.host("grep -qx 1 theirs; test $(stat -c %u theirs) = 12345; grep -qx 2 replaced; test $(stat -c %g replaced) = 12345; grep -qx 2 ours")
}

// TestCapabilities: what makes a program powerful does not land, and is told.
func TestCapabilities(t *testing.T) {
	f := onDisk(t, "")
	txn := f.begin()
	run(t, txn.Layer(), "echo 1 > prog; mkdir n; echo 1 > n/prog")
	// cap_net_raw, effective
	const value = "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	for _, path := range []string{"prog", "n/prog"} {
		err := unix.Setxattr(filepath.Join(txn.Layer().Upper, path), "security.capability", []byte(value), 0)
		if err != nil && !rootRights() {
			t.Skip("only root can give capabilities here")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got := f.land(txn)
	want := []Withheld{{"n/prog", "file capabilities removed"}, {"prog", "file capabilities removed"}}
	if diff := cmp.Diff(want, got.Withheld); diff != "" {
		t.Errorf("withheld (-want +got):\n%s", diff)
	}
	for _, path := range []string{"prog", "n/prog"} {
		if names := listXattr(t, filepath.Join(f.dir, path)); len(names) > 0 {
			t.Errorf("%s has %q", path, names)
		}
	}
}

// TestLargeHoles: what a landing reads is bounded, though the size of a file costs a run nothing.
func TestLargeHoles(t *testing.T) {
	f := onDisk(t, "truncate -s 8T f")
	begun := time.Now()
	report := f.landed("touch f", "")
	if d := time.Since(begun); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
	if len(report.Modified) != 1 {
		t.Errorf("modified: %q", report.Modified)
	}
}
