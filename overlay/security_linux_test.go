package overlay

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// securityAttributes are those that a test can set here: one by a run, where the kernel has SELinux without a policy and so
// leaves labels to a file's owner, and any by root.
func securityAttributes(t *testing.T) (byRun, byRoot bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	given := listXattr(t, file)
	byRun = !slices.Contains(given, selinux) && unix.Setxattr(file, selinux, []byte("x"), 0) == nil
	byRoot = rootRights() && unix.Setxattr(file, otherSecurity, []byte("x"), 0) == nil
	return byRun, byRoot
}

const (
	selinux       = "security.selinux"
	otherSecurity = "security.another"
)

// TestSecurityAttributes: what a run, or whatever wrote its layer, left in the namespace of attributes that is the kernel's
// does not land, and is told.
func TestSecurityAttributes(t *testing.T) {
	byRun, byRoot := securityAttributes(t)
	if !byRun && !byRoot {
		t.Skip("nothing of the kind can be set here: no SELinux without a policy in this kernel, and not root")
	}
	for _, tt := range []struct {
		attr string
		can  bool
	}{{selinux, byRun}, {otherSecurity, byRoot}} {
		for _, review := range []string{"", "before"} {
			if !tt.can {
				continue
			}
			t.Run(strings.TrimSuffix(tt.attr+", "+review, ", "), func(t *testing.T) {
				f := onDisk(t, "echo 1 > changed; echo 1 > same; echo 1 > kept; ln -s kept link; mkdir old")
				f.review = review
				txn := f.begin()
				run(t, txn.Layer(), `echo 2 > changed; echo 1 > new; mkdir -p dir/sub; echo 1 > dir/sub/f; ln -s new newlink; ln -s f dir/l
					ln new also; chmod 700 old; echo 1 > shut; chmod 0 shut; tool set same user.x y , unset same user.x`)
				marked := []string{"changed", "new", "dir", "dir/sub/f", "newlink", "dir/l", "same", "shut"}
				if tt.attr == selinux {
					set := make([]string, len(marked))
					for i, path := range marked {
						set[i] = "set " + path + " " + tt.attr + " label"
					}
					run(t, txn.Layer(), "chmod 600 shut; tool "+strings.Join(set, " , ")+"; chmod 0 shut")
				} else {
					for _, path := range marked {
						if err := unix.Lsetxattr(filepath.Join(txn.Layer().Upper, path), tt.attr, []byte("label"), 0); err != nil {
							t.Fatal(err)
						}
					}
				}
				withheld := func(report Report, paths ...string) {
					t.Helper()
					var want []Withheld
					for _, path := range paths {
						want = append(want, Withheld{path, tt.attr + " removed"})
					}
					if diff := cmp.Diff(want, report.Withheld); diff != "" {
						t.Errorf("withheld (-want +got):\n%s", diff)
					}
				}
				all := []string{"also", "changed", "dir", "dir/l", "dir/sub/f", "new", "newlink", "same", "shut"}
				if review == "" {
					withheld(f.land(txn), all...)
				} else {
					parked := f.park(txn)
					withheld(parked, all...)
					// What lands is a copy of what waits, in which directories are new ones.
					withheld(f.reviewed(parked), slices.DeleteFunc(all, func(path string) bool { return path == "dir" })...)
				}
				for _, path := range append(marked, "also", "kept", "link", "old", "dir/sub") {
					if names := listXattr(t, filepath.Join(f.dir, path)); slices.Contains(names, tt.attr) {
						t.Errorf("%s has %q", path, names)
					}
				}
				f.host("test $(cat changed) = 2; test $(readlink newlink) = new; test $(stat -c %a shut) = 0; test $(stat -c %a old) = 700")
			})
		}
	}
}

// A label that the person's file has had stays with it, and is not told of where the run changed nothing.
func TestSecurityAttributeOfTheHosts(t *testing.T) {
	if byRun, _ := securityAttributes(t); !byRun {
		t.Skip("nobody but the kernel sets labels here")
	}
	f := onDisk(t, "echo 1 > touched; tool set touched "+selinux+" label")
	got := f.landed("tool set touched user.x y , unset touched user.x; echo 1 > new", "")
	if len(got.Withheld) > 0 || got.Summary() != "workspace: 1 added: new" {
		t.Errorf("%s, withheld %v", got.Summary(), got.Withheld)
	}
	f.host("tool has touched " + selinux + " label")
}

// The cache of runs has them no more than a workspace.
func TestSecurityAttributesInTheCache(t *testing.T) {
	byRun, byRoot := securityAttributes(t)
	attr := selinux
	if !byRun {
		attr = otherSecurity
	}
	if !byRun && !byRoot {
		t.Skip("nothing of the kind can be set here: no SELinux without a policy in this kernel, and not root")
	}
	f := newCache(t, 1<<30)
	txn := f.after("mkdir dir; echo 1 > dir/f; echo 1 > f; ln -s f link; ln -s f dir/link")
	for _, path := range []string{"f", "link", "dir", "dir/f", "dir/link"} {
		if err := unix.Lsetxattr(filepath.Join(txn.Layer().Upper, path), attr, []byte("label"), 0); err != nil {
			t.Fatal(err)
		}
	}
	f.land(txn)
	const want = "dir/755 dir/f=1 dir/link>f f=1 link>f" // which looks for attributes, too
	if got := f.content(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestGivenByTheKernel(t *testing.T) {
	for _, tt := range []struct {
		has, given, want []string
	}{
		{[]string{"user.overlay.origin", selinux, "security.capability"}, nil, []string{"user.overlay.origin", selinux, "security.capability"}},
		{[]string{selinux, "security.ima", "user.overlay.opaque"}, []string{selinux}, []string{"security.ima", "user.overlay.opaque"}},
		{[]string{capability}, []string{selinux}, []string{capability}},
	} {
		if diff := cmp.Diff(tt.want, withoutGiven(slices.Clone(tt.has), tt.given)); diff != "" {
			t.Errorf("%q, given %q (-want +got):\n%s", tt.has, tt.given, diff)
		}
	}
}
