package overlay

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWithoutJournal(t *testing.T) {
	dev := unix.Mkdev(254, 3)
	for _, test := range []struct {
		name, task string
		want       bool
	}{
		{"without", "<none>\n", true},
		{"with", "231\n", false},
		{"another filesystem", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			sys := t.TempDir()
			for _, dir := range []string{"dev/block", "fs/ext4/vda3"} {
				if err := os.MkdirAll(filepath.Join(sys, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("../../devices/virtio1/block/vda/vda3", filepath.Join(sys, "dev/block/254:3")); err != nil {
				t.Fatal(err)
			}
			if test.task != "" {
				if err := os.WriteFile(filepath.Join(sys, "fs/ext4/vda3/journal_task"), []byte(test.task), 0o444); err != nil {
					t.Fatal(err)
				}
			}
			if got := withoutJournal(sys, dev); got != test.want {
				t.Errorf("got %v", got)
			}
			if withoutJournal(sys, unix.Mkdev(254, 4)) {
				t.Error("true of a device that is not there")
			}
		})
	}
}

// The flag is set where it helps, on the directory that the runs' are in and on no other.
func TestSpread(t *testing.T) {
	f := onDisk(t, "echo 1 >f")
	f.begin()
	spread(f.root, t.TempDir()) // nothing there says that it would help
	st, err := statAt(f.scratch.server.fd, "")
	if err != nil {
		t.Fatal(err)
	}
	want := withoutJournal("/sys", st.dev)
	t.Logf("an ext4 without a journal: %v", want)
	for path, want := range map[string]bool{
		f.scratch.server.path:                      want,
		f.scratch.base.path:                        false,
		filepath.Join(f.scratch.server.path, "r1"): false,
		f.root.path:                                false,
	} {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		unix.Close(fd)
		if got := err == nil && flags&topDir != 0; got != want {
			t.Errorf("%s: %v, want %v (%v)", path, got, want, err)
		}
	}
}
