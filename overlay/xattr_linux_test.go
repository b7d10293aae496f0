package overlay

import (
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
