package sandbox

import (
	"errors"
	"testing"
)

func TestValidate(t *testing.T) {
	good := func() Spec {
		return Spec{ID: "r-1", Argv: []string{"true"}, Env: []string{"A=b", "E="}, Dir: "/w", Home: "/home/u"}
	}
	if err := good().validate(); err != nil {
		t.Fatalf("control: %v", err)
	}
	inShm := good() // a workspace there is on the host's tmpfs; a run's own /dev/shm is below it
	inShm.Mounts = []Mount{{Kind: MountBind, Source: "/dev/shm/ws", Target: "/dev/shm/ws"}}
	if err := inShm.validate(); err != nil {
		t.Errorf("a mount below /dev/shm: %v", err)
	}
	mount := func(m Mount) func(*Spec) { return func(s *Spec) { s.Mounts = []Mount{m} } }
	for _, test := range []struct {
		want string
		edit func(*Spec)
	}{
		{`id "a/b" holds more than letters, digits and '-'`, func(s *Spec) { s.ID = "a/b" }},
		{`id "" is empty or longer than 64 bytes`, func(s *Spec) { s.ID = "" }},
		{"argv is empty", func(s *Spec) { s.Argv = nil }},
		{"an argument or environment variable holds a NUL byte", func(s *Spec) { s.Argv = []string{"a", "b\x00"} }},
		{`env holds "=x", which is not KEY=VALUE`, func(s *Spec) { s.Env = []string{"=x"} }},
		{"uid or gid is negative", func(s *Spec) { s.UID = -1 }},
		{`dir is "w", not a clean absolute path`, func(s *Spec) { s.Dir = "w" }},
		{`home is "/home/", not a clean absolute path`, func(s *Spec) { s.Home = "/home/" }},
		{`mounts: target is "/a/../b", not a clean absolute path`, mount(Mount{Kind: MountMask, Target: "/a/../b"})},
		{"mounts: target is the root", mount(Mount{Kind: MountBind, Source: "/", Target: "/"})},
		{`mounts: target "/proc/sys" lies in /proc, which is the sandbox's own`, mount(Mount{Kind: MountBind, Source: "/x", Target: "/proc/sys"})},
		{`mounts: target "/dev/shm" lies in /dev, which is the sandbox's own`, mount(Mount{Kind: MountBind, Source: "/x", Target: "/dev/shm"})},
		{`mounts: source is "", not a clean absolute path`, mount(Mount{Kind: MountBind, Target: "/x"})},
		{`mounts: upper is "", not a clean absolute path`, mount(Mount{Kind: MountOverlay, Source: "/x", Work: "/w", Target: "/x"})},
		{`mounts: the link "/x" has no text or a NUL byte in it`, mount(Mount{Kind: MountSymlink, Target: "/x"})},
		{`mounts: kind "loop" is not known`, mount(Mount{Kind: "loop", Target: "/x"})},
	} {
		s := good()
		test.edit(&s)
		err := s.validate()
		if e := new(SetupError); !errors.As(err, &e) || e.Err.Error() != test.want {
			t.Errorf("got %v, want a SetupError with %q", err, test.want)
		}
	}
}
