package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBoundSockets(t *testing.T) {
	list := `Num       RefCount Protocol Flags    Type St Inode Path
00000000a6b0c15a: 00000003 00000000 00000000 0001 03  1056
0000000000000000: 00000002 00000000 00010000 0001 01 20000 /run/docker.sock
0000000000000000: 00000003 00000000 00000000 0001 03 20001 /run/docker.sock
0000000000000000: 00000002 00000000 00010000 0001 01 20002 @/tmp/.X11-unix/X0
0000000000000000: 00000002 00000000 00010000 0001 01 20003 relative/path
0000000000000000: 00000002 00000000 00000000 0002 01 20004 /home/ann/with space  and more
`
	want := []string{"/home/ann/with space  and more", "/run/docker.sock"}
	if diff := cmp.Diff(want, boundSockets(list)); diff != "" {
		t.Error(diff)
	}
}

func TestPlacesOf(t *testing.T) {
	mounts := parseMounts(`22 1 254:0 / / rw - ext4 /dev/vda rw
23 22 0:20 / /run rw - tmpfs tmpfs rw
24 22 0:20 /user /srv/alias rw - tmpfs tmpfs rw
25 22 254:0 /srv /mnt\040here rw - ext4 /dev/vda rw
26 22 0:20 /user /covered rw - tmpfs tmpfs rw
27 26 0:30 / /covered rw - tmpfs tmpfs rw
28 22 254:1 / /run/other rw - ext4 /dev/vdb rw
`)
	for file, want := range map[string][]string{
		"/run/docker.sock":   {"/run/docker.sock"},
		"/run/user/agent":    {"/run/user/agent", "/srv/alias/agent"},
		"/srv/alias/agent":   {"/run/user/agent", "/srv/alias/agent"},
		"/srv/x":             {"/srv/x", "/mnt here/x"},
		"/run/other/x":       {"/run/other/x"},
		"/home/ann/.agent":   {"/home/ann/.agent"},
		"/covered/something": {"/covered/something"},
	} {
		if diff := cmp.Diff(want, placesOf(file, mounts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestWithoutSockets(t *testing.T) {
	dir, _, err := FollowLinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"shown", "ws"} {
		if err := os.MkdirAll(filepath.Join(dir, "shown", d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"shown/agent", "shown/ws/dev.sock", "beside"} {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	s := Spec{Mounts: []Mount{
		{Kind: MountBind, Source: dir + "/shown", Target: dir + "/shown"},
		{Kind: MountBind, Source: dir + "/shown", Target: "/elsewhere"},
		{Kind: MountOverlay, Source: dir + "/shown/ws", Target: dir + "/shown/ws"},
		{Kind: MountBind, Source: dir + "/beside", Target: dir + "/beside"},
	}}
	want := append(s.Mounts[:4:4],
		Mount{Kind: MountMask, Target: dir + "/shown/r"},
		Mount{Kind: MountMask, Target: "/elsewhere/r"},
		Mount{Kind: MountMask, Target: dir + "/shown/agent"},
		Mount{Kind: MountMask, Target: "/elsewhere/agent"},
		Mount{Kind: MountMask, Target: "/elsewhere/ws/dev.sock"},
	)
	roundabout, err := net.Listen("unix", "/proc/self/fd/../../.."+dir+"/shown/r")
	if err != nil {
		t.Fatal(err)
	}
	defer roundabout.Close()
	got := withoutSockets(s, os.ReadFile)
	if diff := cmp.Diff(want, got.Mounts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(s.Mounts) != 4 {
		t.Error("the caller's mounts were changed")
	}

	// Sockets that are nowhere any more are no reason not to run.
	gone := func(name string) ([]byte, error) {
		if strings.HasSuffix(name, "unix") {
			return []byte("0: 2 0 0 1 1 1 " + dir + "/shown/gone\n"), nil
		}
		return os.ReadFile(name)
	}
	if diff := cmp.Diff(s.Mounts, withoutSockets(s, gone).Mounts); diff != "" {
		t.Errorf("a socket that is gone (-want +got):\n%s", diff)
	}
}
