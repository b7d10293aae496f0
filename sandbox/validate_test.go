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
	mount := func(m Mount) func(*Spec) { return func(s *Spec) { s.Mounts = []Mount{m} } }
	for _, test := range []struct {
		want string
		edit func(*Spec)
	}{
		{`ID "a/b" holds more than letters, digits and '-'`, func(s *Spec) { s.ID = "a/b" }},
		{`ID "" is empty or longer than 64 bytes`, func(s *Spec) { s.ID = "" }},
		{"Argv is empty", func(s *Spec) { s.Argv = nil }},
		{"an argument or environment variable holds a NUL byte", func(s *Spec) { s.Argv = []string{"a", "b\x00"} }},
		{`Env holds "=x", which is not KEY=VALUE`, func(s *Spec) { s.Env = []string{"=x"} }},
		{"UID or GID is negative", func(s *Spec) { s.UID = -1 }},
		{`Dir is "w", not a clean absolute path`, func(s *Spec) { s.Dir = "w" }},
		{`Home is "/home/", not a clean absolute path`, func(s *Spec) { s.Home = "/home/" }},
		{`Mounts: Target is "/a/../b", not a clean absolute path`, mount(Mount{Kind: MountMask, Target: "/a/../b"})},
		{"Mounts: Target is the root", mount(Mount{Kind: MountBind, Source: "/", Target: "/"})},
		{`Mounts: Target "/proc/sys" lies in /proc, which is the sandbox's own`, mount(Mount{Kind: MountBind, Source: "/x", Target: "/proc/sys"})},
		{`Mounts: Source is "", not a clean absolute path`, mount(Mount{Kind: MountBind, Target: "/x"})},
		{`Mounts: Upper is "", not a clean absolute path`, mount(Mount{Kind: MountOverlay, Source: "/x", Work: "/w", Target: "/x"})},
		{`Mounts: the link "/x" has no text or a NUL byte in it`, mount(Mount{Kind: MountSymlink, Target: "/x"})},
		{`Mounts: kind "loop" is not known`, mount(Mount{Kind: "loop", Target: "/x"})},
	} {
		s := good()
		test.edit(&s)
		err := s.validate()
		if e := new(SetupError); !errors.As(err, &e) || e.Err.Error() != test.want {
			t.Errorf("got %v, want a SetupError with %q", err, test.want)
		}
	}
}
