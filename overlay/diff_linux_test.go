package overlay

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDiff: what a run changed, as text for a terminal.
func TestDiff(t *testing.T) {
	f := onDisk(t, `seq 1 20 > a; printf 'no newline' > b; printf '\000\001' > bin; echo gone > del; ln -s a l; echo 1 > x; mkdir d m; echo 1 > since`)
	txn := f.begin()
	txn.Describe("run_shell: \x1b[31mred")
	run(t, txn.Layer(), `sed -i 's/^10$/ten/; 2d' a; printf 'no\033[2Jline\n' > b; printf '\000\002' > bin; rm del; ln -sf b l; chmod 755 x; mkdir new; printf 'n\tn\n' > "new/$(printf 'o\nd')"
		rmdir d; chmod 700 m; echo 2 > since`)
	f.land(txn)
	f.host("echo 3 > since")
	var out strings.Builder
	if err := f.Diff(context.Background(), "", &out); err != nil {
		t.Fatal(err)
	}
	want := `diff a/a b/a
--- a/a
+++ b/a
@@ -1,5 +1,4 @@
 1
-2
 3
 4
 5
@@ -7,7 +6,7 @@
 7
 8
 9
-10
+ten
 11
 12
 13
diff a/b b/b
--- a/b
+++ b/b
@@ -1 +1 @@
-no newline
\ No newline at end of file
+no\x1b[2Jline
diff a/bin b/bin
Binary files a/bin and b/bin differ
removed directory d
diff a/del b/del
deleted file mode 0644
--- a/del
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff a/l b/l
--- a/l
+++ b/l
@@ -1 +1 @@
-a
\ No newline at end of file
+b
\ No newline at end of file
mode 0755 to 0700 of directory m
diff "a/new/o\nd" "b/new/o\nd"
new file mode 0644
--- /dev/null
+++ "b/new/o\nd"
@@ -0,0 +1 @@
+n	n
since was changed since
diff a/x b/x
old mode 0644
new mode 0755
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	landings, err := f.History(context.Background())
	if err != nil || len(landings) != 1 || landings[0].What != "run_shell: \x1b[31mred" || landings[0].Run != "r1" {
		t.Errorf("%+v, %v", landings, err)
	}
}
