package sandbox

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// resolverForms are the shapes that a host's resolv.conf comes in.
var resolverForms = []struct {
	name string
	make func(name string) error
}{
	{"a file", func(name string) error { return os.WriteFile(name, []byte("nameserver 192.0.2.1\n"), 0o644) }},
	{"a link", func(name string) error {
		return errors.Join(os.WriteFile(name+".real", []byte("nameserver 192.0.2.1\n"), 0o644), os.Symlink("resolv.conf.real", name))
	}},
	{"a dangling link", func(name string) error { return os.Symlink("/run/systemd/nowhere/stub-resolv.conf", name) }},
	{"absent", func(string) error { return nil }},
}

// A run has a resolv.conf of its own, and one that can be read, whatever the host's is.
func TestResolverFile(t *testing.T) {
	for _, form := range resolverForms {
		t.Run(form.name, func(t *testing.T) {
			var got []string // of the host, of a run
			runChild(t, child("TestChildResolverFile", form.name, unix.CLONE_NEWUSER|unix.CLONE_NEWNS), &got)
			if len(got) != 2 {
				t.Fatalf("got %q", got)
			}
			if hostHas := strings.Contains(form.name, "absent") || strings.Contains(form.name, "dangling"); strings.HasPrefix(got[0], "nameserver 192.0.2.1") == hostHas {
				t.Errorf("control: the host's is %q", got[0])
			}
			if want := "regular file\n# The network of this run is closed: no route leads to its name server.\nfound 0\n"; got[1] != want {
				t.Errorf("a run has %q, want %q", got[1], want)
			}
		})
	}
}

// TestChildResolverFile is a host with the given form, in a mount namespace where /etc is a copy of the host's.
func TestChildResolverFile(t *testing.T) {
	form := childArgument(t)
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	for _, name := range []string{"/ssl", "/alternatives"} {
		if err := os.Mkdir(dir+name, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("/etc"+name, dir+name, "", unix.MS_BIND|unix.MS_REC, ""); err != nil && !errors.Is(err, unix.ENOENT) {
			t.Fatal(err)
		}
	}
	for _, f := range resolverForms {
		if f.name != form {
			continue
		}
		if err := f.make(dir + "/resolv.conf"); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(dir, "/etc", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount("/etc", unix.MNT_DETACH) })
	host, _ := os.ReadFile("/etc/resolv.conf")
	out := shell(t, newNative(t), "stat -c %F /etc/resolv.conf; head -n 1 /etc/resolv.conf; getent hosts localhost >/dev/null; echo found $?")
	reportToParent(t, []string{string(host), out})
}
