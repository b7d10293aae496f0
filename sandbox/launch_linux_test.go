package sandbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A refusal names what is missing, and what to do, whatever number the kernel gave.
func TestCloneError(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSPC, unix.EACCES, unix.EINVAL} {
		err := cloneError(&os.PathError{Op: "fork/exec", Path: "/proc/self/fd/7", Err: errno}, func() bool { return false })
		e := new(SetupError)
		if !errors.As(err, &e) || e.Hint == "" || !errors.Is(err, errno) {
			t.Errorf("%v: %v (hint %q)", errno, err, e.Hint)
		}
		if want := "sandbox: create namespaces: user namespaces are not available: " + errno.Error(); err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	made := func() bool { return true }
	if err := cloneError(unix.EACCES, made); !strings.Contains(err.Error(), "namespaces can be made, but") || !errors.Is(err, unix.EACCES) {
		t.Errorf("a refused exec: %v", err)
	}
	if err := cloneError(unix.ENOMEM, made); err.Error() != "sandbox: start init: "+unix.ENOMEM.Error() {
		t.Errorf("got %v", err)
	}
}

// Whatever numbers the descriptors of the server have, init is executed from its binary. Here the pipes' are right below
// the binary's, and lower ones are free when the fork wants to put its own somewhere.
func TestInitStartsWhateverIsOpen(t *testing.T) {
	file, err := sealSelf()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	high, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 256)
	if err != nil {
		t.Fatal(err)
	}
	exe := os.NewFile(uintptr(high), "airlock")
	defer exe.Close()
	spec := Spec{UID: os.Getuid(), GID: os.Getgid()}
	if !namespacesCanBeMade(exe, spec) {
		lacks(t, "userns", "namespaces can't be made")
	}
	for free := range 20 { // with nine all of the pipes are below, and with less the last are above
		var fill []int
		for {
			fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			if fill = append(fill, fd); fd > high {
				break
			}
		}
		closeIf := func(yes func(fd int) bool) {
			fill = slices.DeleteFunc(fill, func(fd int) bool { return yes(fd) && unix.Close(fd) == nil })
		}
		closeIf(func(fd int) bool { return fd > high || fd >= high-free })
		pipes, err := newPipes()
		closeIf(func(int) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		init, err := startSealed(exe, "/", pipes, spec)
		pipes.closeChild()
		pipes.closeServer()
		if err != nil {
			t.Errorf("with %d descriptors below the binary's: %v", free, err)
			continue
		}
		_ = init.Kill()
		if _, err := init.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func TestExplain(t *testing.T) {
	err := explain(&SetupError{Op: "make mounts private", Path: "/", Err: unix.EACCES})
	if e := new(SetupError); !errors.As(err, &e) || e.Hint == "" || !errors.Is(err, unix.EACCES) {
		t.Errorf("got %v", err)
	}
	other := &SetupError{Op: "clone mount", Path: "/x", Err: unix.EACCES}
	if err := explain(other); err != error(other) || other.Hint != "" {
		t.Errorf("got %v (hint %q)", err, other.Hint)
	}
}

func TestFailureOfNoKind(t *testing.T) {
	if got := newFailure(errors.New("plain")).setupError().Error(); got != "sandbox: build the sandbox: plain" {
		t.Errorf("got %s", got)
	}
}
