package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A run's beginning fits into what the pipe holds. Of a user who has many pipes the kernel gives a new one little room: then
// a shell is not started ahead, as init would wait for room in the pipe for a shell that waits for init.
func TestShellAheadWithoutRoomInThePipe(t *testing.T) {
	const many = 1100 // of 16 pages each, pipe-user-pages-soft being 16384
	for range many {
		r, w, err := os.Pipe()
		if err != nil {
			t.Skip("so many pipes can't be had: ", err)
		}
		defer r.Close()
		defer w.Close()
	}
	n := isolating(newNative(t))
	spec := bashSpec(t, "echo "+strings.Repeat("'", 4000)+"ends")
	if exit, out := doAhead(t, n, spec, spec); exit != (Exit{}) || out != "ends\n" {
		t.Errorf("%+v, %q", exit, out)
	}
}

// Where a bash can't be started ahead, or is none, a run has the one that it asks for.
func TestShellAheadThatIsNone(t *testing.T) {
	onEach(t, func(t *testing.T, b Backend) {
		n := isolating(b)
		for _, name := range []string{"true", "sleep", "cat"} {
			t.Run(name, func(t *testing.T) {
				program, err := exec.LookPath(name)
				if err != nil {
					t.Fatal(err)
				}
				spec := testSpec(t, "/tools/bash", "-c", "0")
				spec.Mounts = append(spec.Mounts, Mount{Kind: MountBind, Source: program, Target: "/tools/bash"})
				want, direct := doRun(t, n, spec, "")
				exit, out := doAhead(t, n, spec, spec)
				if exit != want || out != direct {
					t.Errorf("%+v %q, want %+v %q", exit, out, want, direct)
				}
			})
		}
		// Their own shells read the pipe as well, and two of them execute a bash with the arguments that they were started with.
		for name, script := range map[string]string{
			"script":               "#!/bin/bash\nexec /bin/bash \"$@\"\n",
			"script that prints":   "#!/bin/bash\necho first\nexec /bin/bash \"$@\"\n",
			"script of another sh": "#!/bin/sh\necho first\nexec /bin/bash \"$@\"\n",
			"script without more":  "#!/bin/bash\necho \"$*\"\n",
		} {
			t.Run(name, func(t *testing.T) {
				wrapper := filepath.Join(t.TempDir(), "bash")
				if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
				real, _, err := FollowLinks(wrapper)
				if err != nil {
					t.Fatal(err)
				}
				spec := testSpec(t, "/tools/bash", "-c", "echo done; exit 3")
				spec.Mounts = append(spec.Mounts, Mount{Kind: MountBind, Source: real, Target: "/tools/bash"})
				n.reserve.drop()
				want, direct := doRun(t, n, spec, "")
				exit, out := doAhead(t, n, spec, spec)
				if exit != want || out != direct || !strings.Contains(out, "done") {
					t.Errorf("%+v %q, want %+v %q", exit, out, want, direct)
				}
			})
		}
		t.Run("not there", func(t *testing.T) {
			spec := testSpec(t, "/tools/bash", "-c", "")
			if exit, _ := doAhead(t, n, spec, spec); exit.Code != 127 {
				t.Errorf("%+v", exit)
			}
		})
		t.Run("dir", func(t *testing.T) {
			spec := bashSpec(t, "")
			like := spec
			spec.Dir = "/nowhere"
			waitingSpare(t, n, like)
			_, err := n.Start(t.Context(), spec, Stdio{})
			if e := new(SetupError); !errors.As(err, &e) || e.Op != OpEnterDir || e.Path != "/nowhere" {
				t.Errorf("%v", err)
			}
		})
	})
}

// A spare whose shell is another one by now is not taken.
func TestShellAheadIsTheHosts(t *testing.T) {
	NeedsShellAhead(t)
	n := isolating(newNative(t))
	bash := bashSpec(t, "").Argv[0]
	tools := t.TempDir()
	copyOf := filepath.Join(tools, "bash")
	place := func() {
		t.Helper()
		content, err := os.ReadFile(bash)
		if err == nil {
			err = os.WriteFile(copyOf+"~", content, 0o755)
		}
		if err == nil {
			err = os.Rename(copyOf+"~", copyOf)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	place()
	spec := bashSpec(t, startedAhead)
	real, links, err := FollowLinks(tools)
	if err != nil {
		t.Fatal(err)
	}
	spec.Mounts = append(append(spec.Mounts, links...), Mount{Kind: MountBind, Source: real, Target: real})
	spec.Argv[0] = filepath.Join(real, "bash")
	var s *spare
	fresh := false
	undisturbed(t, func() {
		s = waitingSpare(t, n, spec)
		fresh = s.fresh()
	})
	if !fresh {
		t.Error("control: a spare that has just been made is not fresh")
	}
	place()
	if s.fresh() {
		t.Error("a spare is fresh although its shell was replaced")
	}
	if exit, out := doRun(t, n, spec, ""); exit.Code != 0 && exit.Code != 1 || exit.Killed {
		t.Errorf("%+v, %q", exit, out)
	}
}

// subjectOf says what becomes of a filter.
type subjectOf struct{ err error }

func (subjectOf) enclose(*wall) error { return nil }

func (s subjectOf) installFilter([]rule, uintptr) (int, error) { return 77, s.err }

// Where a shell can't be confined, the payload that is started in its place has its renames carried out.
func TestConfineAfterAFailure(t *testing.T) {
	r := &renamer{start: make(chan listener, 2)}
	if err := confine(subjectOf{unix.ENOSYS}, nil, r, nil); !errors.Is(err, unix.ENOSYS) {
		t.Errorf("control: %v", err)
	}
	if err := confine(subjectOf{}, nil, r, nil); err != nil {
		t.Error(err)
	}
	for range 2 {
		if l, ok := <-r.start; l != 77 || !ok {
			t.Errorf("the renamer got %d, %t", l, ok)
		}
	}
}
