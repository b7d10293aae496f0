package overlay

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// between lands a run, with something happening between the plan and its first step.
func (f *fixture) between(txn *Txn, happens func()) (Report, error) {
	f.t.Helper()
	p, _, err := txn.planned(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	l := txn.lander(p)
	if err := l.stage(context.Background()); err != nil {
		f.t.Fatal(err)
	}
	happens()
	err = l.run("")
	l.report.sort()
	return l.report, err
}

// TestLate: an edit after the plan was made, which only the steps themselves can see.
func TestLate(t *testing.T) {
	f := onDisk(t, "for i in a b c d e; do echo 1 > $i; done; mkdir dir; echo 1 > dir/x")
	txn := f.begin()
	run(t, txn.Layer(), "echo run > a; rm b; echo run > new; echo run > c; rm d; mkdir newdir; echo run > newdir/x; rm -r dir")
	report, err := f.between(txn, func() {
		f.host("echo host > a; echo host > b; echo host > new; rm c d; mkdir newdir; echo host > newdir/y; echo host > dir/y")
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := txn.end(); err != nil {
		t.Fatal(err)
	}
	want := Report{
		Landed:  true,
		Deleted: []string{"d", "dir/x"}, // d is gone, as the run had it
		Conflicts: []Conflict{
			{"a", "a.conflict-r1"}, {"b", ""}, {"c", "c.conflict-r1"}, {"new", "new.conflict-r1"}, {"newdir", "newdir.conflict-r1"},
		},
	}
	if diff := cmp.Diff(want, report, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	f.host(`grep -qx host a; grep -qx run a.conflict-r1; grep -qx host b; grep -qx host new; grep -qx run new.conflict-r1
		! test -e c; grep -qx run c.conflict-r1; ! test -e d; test "$(ls newdir)" = y; grep -qx run newdir.conflict-r1/x; test "$(ls dir)" = y`)
}

// TestTakeBack: a step that fails late leaves the workspace as it was, to the last byte and time.
func TestTakeBack(t *testing.T) {
	f := onDisk(t, `mkdir -p d/e ro empty; for i in 1 2 3; do echo $i > f$i; echo $i > d/e/$i; done; echo 1 > ro/a; chmod 555 ro
		ln -s x l; chmod 750 empty; echo z > was-file; mkdir gone; echo 1 > gone/x`)
	list := `find . -printf '%p %y %m %l %s ' -exec sh -c 'test -f "$0" && cat "$0"; echo' {} \; | sort; find . -type f -printf '%p %T@ %i\n' | sort`
	before := f.host(list)
	txn := f.begin()
	run(t, txn.Layer(), `echo run > f1; rm f2; echo run > ro/a; rm -r d; mkdir -p new/deep; echo 1 > new/deep/x; chmod 555 new; rm l; ln -s y l
		chmod 700 empty; rm was-file; mkdir was-file; echo 1 > was-file/x; chmod 555 was-file; rm -r gone; echo zz > zz`)
	_, err := f.between(txn, func() {
		// The last thing to come in is not there.
		staged, err := filepath.Glob(filepath.Join(txn.landing.path, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range staged {
			if b, _ := os.ReadFile(path); string(b) == "zz\n" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	if err == nil || !strings.Contains(err.Error(), "zz") || strings.Contains(err.Error(), "taken back") {
		t.Fatalf("error is %v", err)
	}
	if err := txn.end(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, f.host(list)); diff != "" {
		t.Errorf("the workspace is not what it was (-before +after):\n%s", diff)
	}
	if left := f.leftovers(); left != "" {
		t.Errorf("left: %s", left)
	}
}
