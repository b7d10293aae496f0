package overlay

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func setXattr(t *testing.T, path, name, value string) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	if err := unix.Chmod(path, st.Mode&0o7777|0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(path, name, []byte(value), 0); err != nil {
		t.Fatalf("set %s on %s: %v", name, path, err)
	}
	if err := unix.Chmod(path, st.Mode&0o7777); err != nil {
		t.Fatal(err)
	}
}

func listXattr(t *testing.T, path string) []string {
	t.Helper()
	names, err := xattrNames(path, unix.Llistxattr)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestXattrs: what overlayfs noted stays in the layer, what the run set travels.
func TestXattrs(t *testing.T) {
	f := onDisk(t, "mkdir d; echo 1 > d/f; echo 1 > only; setfattr -n user.was -v 1 only 2>/dev/null || true")
	txn := f.begin()
	run(t, txn.Layer(), `echo 2 > d/f; rm -r d; mkdir d; echo 3 > d/g; chmod 444 d/g; mkdir -p n/m; echo 1 > n/m/f; chmod 400 n/m/f; echo 2 > only`)
	// Not every host has setfattr; what a run would set is set in the layer.
	upper := txn.Layer().Upper
	for path, names := range map[string][]string{
		"n/m/f": {"user.mine", "user.overlay.overlay.x"},
		"n/m":   {"user.overlay.opaque", "user.mine"},
		"d":     {"user.overlay.impure"},
	} {
		for _, name := range names {
			setXattr(t, filepath.Join(upper, path), name, "y")
		}
	}
	f.land(txn)
	for _, path := range []string{"d", "d/g", "n", "n/m", "n/m/f", "only"} {
		names := listXattr(t, filepath.Join(f.dir, path))
		for _, n := range names {
			if _, ours := overlayXattr(n); ours {
				t.Errorf("%s landed with %s", path, n)
			}
		}
		mine := strings.Contains(strings.Join(names, " "), "user.mine")
		if want := strings.HasPrefix(path, "n/m"); mine != want {
			t.Errorf("%s has user.mine: %v, want %v", path, mine, want)
		}
	}
	if got := f.host("stat -c %a d/g n/m/f"); got != "444\n400\n" {
		t.Errorf("modes after stripping: %q", got)
	}
}
